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
	// Object is the state after the change; that of a deletion is the last
	// state with the RV of the deletion.
	Object *scan.Object
	// Prev is the immediately prior version (T3), nil for an Added.
	Prev *scan.Object
	// Inferred marks a change learned from a list, not from a watch.
	Inferred bool
	// At is when the first view that has the event was published.
	At time.Time

	gone atomic.Pointer[scan.Object] // see left
}

// left returns Prev with the RV of the event: what the object was to those who
// no longer see it. All get the same one.
func (e *Event) left() *scan.Object {
	if o := e.gone.Load(); o != nil {
		return o
	}
	e.gone.CompareAndSwap(nil, e.Prev.At(e.RV))
	return e.gone.Load()
}

// A Gap is a span of RVs, ends excluded, of which only the outcome is known.
type Gap struct{ From, To uint64 }

type tree = btree.BTreeG[*scan.Object]

func newTree() *tree {
	return btree.NewG(32, func(a, b *scan.Object) bool { return a.Key < b.Key })
}

// A Snapshot is the objects at one RV. It is immutable.
type Snapshot struct {
	// RV is the resourceVersion of the state.
	RV   uint64
	tree *tree

	timeline *Timeline              // nil for a snapshot of the past
	indexes  map[string]sharedIndex // by the names of their attributes
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
		// The namespace's keys are those from "namespace/" up to, but not
		// with, "namespace0": '0' is the byte after '/'.
		from = max(from, kube.Key(namespace+"/"))
		s.tree.AscendRange(&scan.Object{Key: from}, &scan.Object{Key: kube.Key(namespace + "0")}, each)
	}
}

// A checkpoint is the state after the first seq events of the log's life.
type checkpoint struct {
	seq  uint64
	tree *tree
}

// A View is the timeline at one moment: the snapshot at its head and the log
// behind it. It is immutable.
type View struct {
	Snapshot
	// At is when the view was published.
	At time.Time
	// Start is the lowest RV a cursor can start from.
	Start uint64
	// BookmarkForm is an object in the form of the upstream's bookmarks.
	BookmarkForm *scan.Object
	// ListKind is the kind of the upstream's lists.
	ListKind string

	stats       Stats
	closed      bool
	epoch       uint64
	first       uint64 // sequence number of log[0]
	log         []*Event
	checkpoints []checkpoint
	gaps        []Gap
	changed     chan struct{} // closed when there is a newer view
}

// Epoch counts the histories that the timeline has had: views of two that do not
// continue each other (Reset) have different ones.
func (v *View) Epoch() uint64 { return v.epoch }

// Closed reports whether the timeline has ended; there is no newer view then.
func (v *View) Closed() bool { return v.closed }

// end returns the sequence number behind the log.
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

// GapAround returns the gap that rv is inside of, also one that the log no longer
// holds. Whoever has such an RV may have a part of the gap's difference, which
// neither this log nor the API server's continues: its inferred deletions may be
// on either side of the true ones (ADR 2).
func (v *View) GapAround(rv uint64) (g Gap, in bool) {
	i := slices.IndexFunc(v.gaps, func(g Gap) bool { return g.From < rv && rv < g.To })
	if i < 0 {
		return Gap{}, false
	}
	return v.gaps[i], true
}

// GapAfter returns the first gap that ends above rv. Its difference is the events
// above From, up to To.
func (v *View) GapAfter(rv uint64) (g Gap, ok bool) {
	i := slices.IndexFunc(v.gaps, func(g Gap) bool { return rv < g.To })
	if i < 0 {
		return Gap{}, false
	}
	return v.gaps[i], true
}

// gapsInWindow returns how many gaps the log holds the difference of.
func (v *View) gapsInWindow() (n int) {
	for _, g := range v.gaps {
		if g.To > v.Start {
			n++
		}
	}
	return n
}

// CanStart reports whether a cursor can start from rv. A future RV is fine.
// One inside a gap is not: the client may hold objects whose inferred deletion
// has a lower RV.
func (v *View) CanStart(rv uint64) bool { return rv >= v.Start && !v.inGap(rv) }
