// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A Sink is what a reflector can feed: the timeline or the record of a resource.
// Calls come from one goroutine at a time.
type Sink interface {
	// Head returns the RV to resume from; 0 before the first list.
	Head() uint64
	// Holds reports whether the sink has an object.
	Holds(kube.Key) bool
	// Begin is called when a list begins to be read.
	Begin()
	// Replace takes a complete list. With diverged, the upstream has another history
	// than the sink. continued reports whether the sink had a head before, so that
	// the list adds only the difference.
	Replace(list *scan.List, diverged bool) (continued bool)
	// Apply takes an event. After an error the reflector opens a new watch.
	Apply(kube.EventType, *scan.Object) error
	// Bookmark takes a bookmark: every event up to rv has been applied.
	Bookmark(rv uint64, o *scan.Object)
	// Flush is called when no further frame has been received.
	Flush()
}

// A feed passes what a reflector reads to the attached sink. Its lock is held during
// each call of the reflector, so that another goroutine can attach another sink
// between two calls. It implements reflector.Sink.
type feed struct {
	lock Mutex // guards what follows

	to     Sink
	items  []*scan.Object // of the list being read
	lists  int            // complete lists
	listed uint64         // the RV of the last one
	kept   *kept          // nil unless events are kept

	trust atomicTrust
}

func newFeed(to Sink) *feed { return &feed{lock: NewMutex(), to: to} }

// attach makes the reflector feed another sink. The caller holds the lock.
func (f *feed) attach(to Sink) {
	if f.to, f.kept = to, nil; f.items != nil {
		to.Begin()
	}
}

// Head implements reflector.Sink.
func (f *feed) Head() uint64 {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.to.Head()
}

// Holds implements reflector.Sink.
func (f *feed) Holds(key kube.Key) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.to.Holds(key)
}

// Begin implements reflector.Sink. A sink does not need to know whether the list
// overwrites: the versions of a list always count.
func (f *feed) Begin(bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.items = []*scan.Object{}
	f.to.Begin()
}

// Item implements reflector.Sink. Replace finds out whether the list follows what the
// sink has.
func (f *feed) Item(o *scan.Object) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.items = append(f.items, o)
	return nil
}

// End implements reflector.Sink.
func (f *feed) End(list *scan.List) (continued bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	whole := *list
	whole.Items, f.items = f.items, nil
	f.lists++
	f.listed = list.RV
	if f.kept != nil {
		f.kept.broken = true
	}
	defer f.trust.listed()
	return f.to.Replace(&whole, f.trust.get() == Diverged)
}

// Apply implements reflector.Sink.
func (f *feed) Apply(typ kube.EventType, o *scan.Object) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if err := f.to.Apply(typ, o); err != nil {
		return err
	}
	if f.kept != nil {
		f.kept.add(typ, o)
	}
	return nil
}

// Bookmark implements reflector.Sink.
func (f *feed) Bookmark(rv uint64, o *scan.Object) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.kept != nil {
		f.kept.add(kube.Bookmark, o)
	}
	f.to.Bookmark(rv, o)
}

// Flush implements reflector.Sink.
func (f *feed) Flush() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.to.Flush()
}

// maxKept bounds the kept events, in bytes.
const maxKept = 64 << 20

// kept are the frames that were read while a timeline is loaded from the record.
type kept struct {
	frames []scan.Frame
	bytes  int
	// broken is set if the frames do not have every event.
	broken bool
}

func (k *kept) add(typ kube.EventType, o *scan.Object) {
	if n := len(k.frames); n > 0 && typ == kube.Bookmark && k.frames[n-1].Type == kube.Bookmark {
		k.frames[n-1].Object = o
		return
	}
	if k.bytes += len(o.JSON) + timeline.EventOverhead; k.bytes > maxKept {
		k.frames, k.broken = nil, true
	}
	if !k.broken {
		k.frames = append(k.frames, scan.Frame{Type: typ, Object: o})
	}
}

// apply brings a timeline that has everything up to its head up to the last frame.
func (k *kept) apply(t *timeline.Timeline) error {
	head := t.Head()
	for _, f := range k.frames {
		switch {
		case f.Object.RV < head: // before the timeline's state
		case f.Type == kube.Bookmark:
			t.Bookmark(f)
		default:
			// Several deletions can share an RV: those that the timeline has are
			// dropped by Apply.
			if err := t.Apply(f); err != nil {
				return err
			}
		}
	}
	t.Flush()
	return nil
}
