// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// Replace takes a list that the upstream answered with after its history was
// lost: the difference to the objects held enters the log as ordinary events,
// at once (readers see all of it or nothing), and the span as a [Gap]. The
// first list, and one which does not continue what is held, is a Reset.
//
// An event needs an RV of its own: a client that stopped between two events of
// one RV would lose the second. Added and modified objects have theirs. An
// inferred deletion gets one inside the gap that no listed object has,
//
//	     head                          list
//	───────┤ . d . . d . m . . a . . m . ├──
//	       └──────────── gap ────────────┘
//
// and, where the name has come back with another UID, below that of its
// successor. The smallest free RVs go to the earliest deadlines, which finds
// an assignment if there is one. There is, since each missed deletion consumed
// a revision inside the gap and below its deadline, unless the upstream made
// several at one revision, as etcd does when a lease expires: such deletions
// share the last RV that there is room for, as they did there.
//
// It reports whether the timeline continues; false means it was reset.
func (t *Timeline) Replace(list *scan.List) (continued bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events, ok := t.diff(list)
	if !ok {
		t.reset(list)
		return false
	}
	t.addGap(Gap{From: t.next.RV, To: list.RV})
	for _, e := range events {
		t.append(e)
	}
	t.print(list)
	t.next.ListKind = list.Kind
	t.advance(list.RV)
	t.trim()
	t.publish()
	return true
}

// print takes over how the list prints objects that have not changed, where its
// columns are other ones. (Under the same columns only the clock makes a
// difference, unless they are a custom resource's: which of its fields they show
// may have changed.)
func (t *Timeline) print(list *scan.List) {
	for _, o := range list.Items {
		if held, ok := t.tree.Get(o); ok && held.RV == o.RV && (held.Columns != o.Columns || !o.Typed() && held.Row != o.Row) {
			t.tree.ReplaceOrInsert(o)
		}
	}
	if form := t.next.BookmarkForm; form.Columns != list.Columns {
		other := *form
		other.Row, other.Columns = "", list.Columns // until there is a bookmark
		t.next.BookmarkForm = &other
	}
}

// maxGaps is how many gaps are remembered; they outlast the log (see
// View.GapAround).
const maxGaps = 256

// addGap records a gap at the head. Where nothing is known to have happened
// since the last one began, that one grows.
func (t *Timeline) addGap(g Gap) {
	if g.From == g.To {
		return
	}
	gaps := slices.Clone(t.next.gaps) // published ones are not touched
	if n := len(gaps); n > 0 && gaps[n-1].To == g.From && t.next.after(gaps[n-1].From) == len(t.next.log) {
		gaps[n-1].To = g.To
	} else {
		gaps = append(gaps, g)
	}
	gaps = gaps[max(0, len(gaps)-maxGaps):]
	t.next.gaps, t.news = gaps, true
}

// A deletion is a missed one: of the object, at an RV below the deadline.
type deletion struct {
	prev     *scan.Object
	deadline uint64
}

// diff returns the events that lead from the objects held to the list, in the
// order of their RVs. ok is false when there is no such way: nothing is held,
// or the upstream went back in time.
func (t *Timeline) diff(list *scan.List) (events []*Event, ok bool) {
	head := t.next.RV
	if t.View() == nil || list.RV < head {
		return nil, false
	}
	var deletions []deletion
	listed := make(map[kube.Key]bool, len(list.Items))
	used := make(map[uint64]bool)
	for _, o := range list.Items {
		listed[o.Key] = true
		prev, _ := t.tree.Get(o)
		switch {
		case prev != nil && prev.RV == o.RV && prev.JSON == o.JSON:
			continue
		case o.RV <= head || o.RV > list.RV || used[o.RV]:
			// Not the history that we know; or the same version looks
			// otherwise, after a change of a custom resource's schema.
			return nil, false
		case prev != nil && prev.UID != o.UID:
			deletions = append(deletions, deletion{prev, o.RV})
			prev = nil
		}
		used[o.RV] = true
		e := &Event{Type: kube.Modified, RV: o.RV, Object: o, Prev: prev, Inferred: true}
		if prev == nil {
			e.Type = kube.Added
		}
		events = append(events, e)
	}
	t.tree.Ascend(func(o *scan.Object) bool {
		if !listed[o.Key] {
			deletions = append(deletions, deletion{o, list.RV + 1})
		}
		return true
	})
	slices.SortStableFunc(deletions, func(a, b deletion) int { return cmp.Compare(a.deadline, b.deadline) })

	free := func(rv uint64) uint64 { // the first free RV from rv on
		for used[rv] {
			rv++
		}
		return rv
	}
	rv := head // of the deletion before
	for _, d := range deletions {
		if next := free(rv + 1); next < d.deadline {
			rv = next
		} else if rv == head {
			return nil, false // no room at all
		}
		events = append(events, &Event{Type: kube.Deleted, RV: rv, Object: d.prev.At(rv), Prev: d.prev, Inferred: true})
	}
	slices.SortStableFunc(events, func(a, b *Event) int { return cmp.Compare(a.RV, b.RV) })
	return events, true
}
