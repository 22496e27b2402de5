// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/watchcache"
)

// maxPendingBytes is about the maximum size of a batch of events.
const maxPendingBytes = 4 << 20

// A writer writes one resource's events to its stream, in batches: a durable write
// costs a sync, whatever its size. Any goroutine may use it, but only one at a time
// adds events.
type writer struct {
	store    *history.Store
	place    func() error // fails if the store's directory is gone
	resource kube.Resource
	delay    delays
	count    counts
	log      *slog.Logger

	// published has copies of fields below, for callers that must not wait for the
	// disk.
	published struct {
		stream atomic.Pointer[history.Stream]
		head   atomic.Pointer[history.Moment]
		oldest atomic.Pointer[time.Time]
		lost   atomic.Pointer[chan struct{}]
	}

	mu      watchcache.Mutex // guards what follows; held while writing
	stream  *history.Stream
	head    history.Moment // everything up to here is in the stream or pending
	pending []history.Event
	size    int
	oldest  time.Time // when the first pending event was added
	written time.Time // when the head was last written
	// template is a newer bookmark than the one in the stream's form; nil if there
	// is none. lastTemplate is the one that was passed last.
	template, lastTemplate *scan.Object
	// definition identifies the definition at the last list, see
	// upstream.Server.DefinitionID.
	definition string
	moved      chan struct{} // closed when the head, or the stream's head, has moved
	lost       chan struct{} // closed when the record turns out to be damaged
	wake       chan struct{} // has a value if there is something to write
	hurry      chan struct{} // has a value if a caller waits for the write
}

// delays are how long a write waits for more events: a write with events, and a write
// that only advances the head.
type delays struct{ events, head time.Duration }

func newWriter(s *session, stream *history.Stream) *writer {
	w := &writer{
		store: s.store, place: s.r.checkPlace, resource: stream.Resource(), delay: s.r.delay, count: s.r.metrics.of(stream.Resource()),
		log: s.r.log.With("resource", stream.Resource().String()), lost: make(chan struct{}),
		mu: watchcache.NewMutex(), stream: stream, head: stream.Head(), definition: stream.Form().Definition,
		moved: make(chan struct{}), wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
	}
	w.publish()
	return w
}

// publish updates the published copies. The caller holds mu.
func (w *writer) publish() {
	w.published.stream.Store(w.stream)
	lost := w.lost
	w.published.lost.Store(&lost)
	head := w.head
	w.published.head.Store(&head)
	oldest := w.oldest
	w.published.oldest.Store(&oldest)
}

// notify wakes callers that wait for the head. The caller holds mu.
func (w *writer) notify() {
	w.publish()
	close(w.moved)
	w.moved = make(chan struct{})
}

// run writes what is pending after its delay, until ctx ends or a write fails.
func (w *writer) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.hurry:
		case <-w.wake:
			for wait := w.wait(); wait > 0; wait = w.wait() {
				hurried := false
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(wait):
				case <-w.wake:
				case <-w.hurry:
					hurried = true
				}
				if hurried {
					break
				}
			}
		}
		if err := w.flush(); err != nil && !errors.Is(err, errDamaged) {
			return err
		}
	}
}

// wait returns how long the next write can wait.
func (w *writer) wait() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 {
		return w.delay.events - time.Since(w.oldest)
	}
	return w.delay.head - time.Since(w.written)
}

// add adds events, in order, and the head after them. It writes once there are many.
func (w *writer) add(events []history.Event, rv uint64, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head.RV == 0 {
		return errDamaged
	}
	if len(events) == 0 && rv == w.head.RV {
		return nil
	}
	if len(w.pending) == 0 && len(events) > 0 {
		w.oldest = time.Now()
	}
	w.pending = append(w.pending, events...)
	for i := range events {
		w.size += len(events[i].Object.JSON) + timeline.EventOverhead
	}
	w.move(rv, at)
	if w.size >= maxPendingBytes {
		return w.startEpoch(w.stream, w.write())
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

func (w *writer) move(rv uint64, at time.Time) {
	w.head = history.Moment{RV: max(w.head.RV, rv), At: at}
	w.notify()
}

// flush writes what is pending.
func (w *writer) flush() error {
	if err := w.place(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.startEpoch(w.stream, w.write())
}

func (w *writer) write() error {
	stored := w.stream.Head().RV
	if len(w.pending) == 0 && w.head.RV == stored {
		return nil
	}
	if err := w.stream.Append(w.pending, w.head.RV, w.head.At); err != nil {
		return err
	}
	w.count.events.Add(float64(len(w.pending)))
	w.pending, w.size, w.oldest, w.written = nil, 0, time.Time{}, time.Now()
	w.notify()
	return w.setForm(w.stream.Form().ListKind)
}

// setForm records the newest template and the definition if they differ from the
// recorded form.
func (w *writer) setForm(listKind string) error {
	old := w.stream.Form()
	now := history.Form{ListKind: listKind, Item: w.template, Definition: w.definition}
	w.template = nil
	if now.Item == nil || alike(old.Item, now.Item) {
		now.Item = old.Item
	}
	if now == old {
		return nil
	}
	return w.stream.SetForm(now)
}

// alike reports whether two templates differ only in their RV.
func alike(a, b *scan.Object) bool {
	if a.Columns != b.Columns || a.Row != b.Row || (a.RV == 0) != (b.RV == 0) {
		return false
	}
	if a.RV != 0 {
		a = a.At(b.RV)
	}
	return a.JSON == b.JSON
}

// bookmark advances the head to a bookmark.
func (w *writer) bookmark(rv uint64, o *scan.Object, at time.Time) error {
	w.setTemplate(o)
	return w.add(nil, rv, at)
}

// reached waits until everything up to rv is written. It fails when ctx or the
// recording ends.
func (w *writer) reached(ctx, recording context.Context, rv uint64) error {
	for {
		if !w.mu.LockBefore(ctx) {
			return context.Cause(ctx)
		}
		pending := len(w.pending) > 0 && w.pending[0].Object.RV <= rv
		if !pending && w.stream.Head().RV >= rv {
			w.mu.Unlock()
			return nil
		}
		if w.head.RV >= rv {
			select {
			case w.hurry <- struct{}{}:
			default:
			}
		}
		moved := w.moved
		w.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-recording.Done():
			return ErrNotRecorded
		}
	}
}

// lag returns how long the oldest pending event has waited.
func (w *writer) lag() time.Duration {
	oldest := w.published.oldest.Load()
	if oldest.IsZero() {
		return 0
	}
	return time.Since(*oldest)
}

// position returns the head: everything up to it is written or pending. It does not
// wait for the disk.
func (w *writer) position() history.Moment { return *w.published.head.Load() }

// current returns the stream that is written to. It does not wait for the disk.
func (w *writer) current() *history.Stream { return w.published.stream.Load() }

// setTemplate sets the template of bookmarks.
func (w *writer) setTemplate(o *scan.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastTemplate != o {
		w.lastTemplate, w.template = o, o
	}
}
