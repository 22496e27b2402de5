// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/btree"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// An Event is one change of one object. It is immutable.
type Event struct {
	Type kube.EventType // Added, Modified or Deleted
	RV   uint64
	// Object is the state after the change; for a deletion, the last state at
	// the RV of the deletion.
	Object *scan.Object
	// Prev is the immediately prior version (T3), nil for an Added.
	Prev *scan.Object
	// Inferred marks a change learned from a list, not from a watch.
	Inferred bool
	// At is when the first view with the event was published.
	At time.Time

	prevAtRV atomic.Pointer[scan.Object] // see deselected
}

// deselected returns Prev at the RV of the event: the object of the DELETED
// event that a watcher gets when the object stops matching its selector. All
// watchers share it.
func (e *Event) deselected() *scan.Object {
	if o := e.prevAtRV.Load(); o != nil {
		return o
	}
	e.prevAtRV.CompareAndSwap(nil, e.Prev.At(e.RV))
	return e.prevAtRV.Load()
}

// A Gap is a span of RVs, ends excluded, that no watch observed; the states at its
// ends are known.
type Gap struct{ From, To uint64 }

type tree = btree.BTreeG[*scan.Object]

func newTree() *tree {
	return btree.NewG(32, func(a, b *scan.Object) bool { return a.Key < b.Key })
}

// A Snapshot holds the objects at one RV. It is immutable.
type Snapshot struct {
	// RV is the resourceVersion of the state.
	RV   uint64
	tree *tree

	timeline *Timeline // nil for a snapshot of the past
	indexes  map[attributeName]publishedIndex
}

// Get returns the object with the key, nil if there is none.
func (s *Snapshot) Get(key kube.Key) *scan.Object {
	o, _ := s.tree.Get(&scan.Object{Key: key})
	return o
}

// Len returns the number of objects.
func (s *Snapshot) Len() int { return s.tree.Len() }

// All yields the objects of a namespace, "" for all, in list order, beginning
// with the first whose key is at least from.
func (s *Snapshot) All(namespace string, from kube.Key) iter.Seq[*scan.Object] {
	return func(yield func(*scan.Object) bool) {
		each := func(o *scan.Object) bool { return yield(o) }
		if namespace == "" {
			s.tree.AscendGreaterOrEqual(&scan.Object{Key: from}, each)
			return
		}
		// The namespace's keys are at least "namespace/" and less than
		// "namespace0": '0' is the byte after '/'.
		from = max(from, kube.Key(namespace+"/"))
		s.tree.AscendRange(&scan.Object{Key: from}, &scan.Object{Key: kube.Key(namespace + "0")}, each)
	}
}

// A checkpoint is the state after the first seq events since the timeline began.
type checkpoint struct {
	seq  uint64
	tree *tree
}

// A View is the timeline at one moment: the log and the snapshot at its head.
// It is immutable.
type View struct {
	Snapshot
	// At is when the view was published.
	At time.Time
	// Start is the lowest RV that a cursor can start from.
	Start uint64
	// BookmarkTemplate is an object in the form of the upstream's bookmarks.
	BookmarkTemplate *scan.Object
	// ListKind is the kind of the upstream's lists.
	ListKind string

	listed      uint64       // RV of the last list
	newest      *scan.Object // that had the highest RV in it; nil if it was empty
	stats       Stats
	closed      bool
	epoch       uint64
	began       uint64 // the epoch with which the upstream's history began
	lost        uint64
	first       uint64 // sequence number of log[0]
	log         []*Event
	checkpoints []checkpoint
	gaps        []Gap
	changed     chan struct{} // closed when there is a newer view
}

// Epoch counts how often the timeline was reset. A view does not continue one of
// another epoch.
func (v *View) Epoch() uint64 { return v.epoch }

// SameHistory reports whether the upstream's history is still that of an earlier epoch: since
// then, only objects that did not change have got another form.
func (v *View) SameHistory(epoch uint64) bool { return v.began <= epoch }

// Lost returns the newest head of the epochs before, 0 if there are none. An RV above the
// head, up to it, may be one of theirs.
func (v *View) Lost() uint64 { return v.lost }

// Closed reports whether the timeline has ended, so that there is no newer view.
func (v *View) Closed() bool { return v.closed }

// A LastKnown is the last event of the upstream that a view knows.
type LastKnown struct {
	Object  *scan.Object // nil if the last list was empty, and no event followed
	Deleted bool
	// Listed is the RV of the last list if no event followed it. Then the event is that
	// of the newest object in the list, and others up to Listed are not known.
	Listed uint64
}

// LastKnown returns the last event that the view knows.
func (v *View) LastKnown() LastKnown {
	if n := len(v.log); n > 0 && v.log[n-1].RV > v.listed {
		return LastKnown{Object: v.log[n-1].Object, Deleted: v.log[n-1].Type == kube.Deleted}
	}
	return LastKnown{Object: v.newest, Listed: v.listed}
}

// end returns the sequence number after the last event of the log.
func (v *View) end() uint64 { return v.first + uint64(len(v.log)) }

// after returns the index in the log of the first event above rv.
func (v *View) after(rv uint64) int {
	i, _ := slices.BinarySearchFunc(v.log, rv, func(e *Event, rv uint64) int {
		if e.RV <= rv {
			return -1
		}
		return 1
	})
	return i
}

// inGap reports whether rv is inside a gap.
func (v *View) inGap(rv uint64) bool {
	_, in := v.GapAround(rv)
	return in
}

// GapAround returns the gap that rv is inside of, even if the log no longer holds
// its events. A client at such an RV may have seen a part of them, which neither
// this log nor the API server's continues: an inferred deletion may be at a lower
// or a higher RV than the true one (ADR 2).
func (v *View) GapAround(rv uint64) (g Gap, in bool) {
	i := slices.IndexFunc(v.gaps, func(g Gap) bool { return g.From < rv && rv < g.To })
	if i < 0 {
		return Gap{}, false
	}
	return v.gaps[i], true
}

// GapAfter returns the first gap that ends above rv. The gap's events are those
// above From, up to To.
func (v *View) GapAfter(rv uint64) (g Gap, ok bool) {
	i := slices.IndexFunc(v.gaps, func(g Gap) bool { return rv < g.To })
	if i < 0 {
		return Gap{}, false
	}
	return v.gaps[i], true
}

// gapsInWindow returns how many gaps have their events in the log.
func (v *View) gapsInWindow() (n int) {
	for _, g := range v.gaps {
		if g.To > v.Start {
			n++
		}
	}
	return n
}

// CanStart reports whether a cursor can start from rv, which may be above the
// head. It cannot start inside a gap: the client may hold objects whose inferred
// deletion has a lower RV.
func (v *View) CanStart(rv uint64) bool { return rv >= v.Start && !v.inGap(rv) }
