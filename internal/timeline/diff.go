// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// Replace takes the list of a relist after the upstream lost its history. The
// difference between the objects held and the list is appended as ordinary
// events, which one view publishes together, and the span is recorded as a
// [Gap]. A first list, and a list that cannot continue what is held, is a Reset.
//
// Each event needs an RV of its own: a client that stopped between two events
// at one RV would lose the second. Added and modified objects have theirs. An
// inferred deletion gets an RV inside the gap that no listed object has,
//
//	     head                          list
//	───────┤ . d . . d . m . . a . . m . ├──
//	       └──────────── gap ────────────┘
//
// and, if an object of the same name but another UID is listed, below that
// object's RV. The smallest free RVs go to the deletions with the earliest
// deadlines, which finds an assignment if one exists. One exists, since each
// missed deletion consumed a revision inside the gap and below its deadline,
// unless the upstream made several at one revision, as etcd does when a lease
// expires: such deletions share the last free RV, as they did upstream.
//
// It reports whether the timeline continues; false means that it was reset. That is so,
// too, if an object that has not changed has another form: no event has an RV for it.
func (t *Timeline) Replace(list *scan.List) (continued bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events, reformed, ok := t.diff(list)
	if !ok || reformed {
		t.reset(list, ok)
		return false
	}
	t.addGap(Gap{From: t.next.RV, To: list.RV})
	for _, e := range events {
		t.append(e)
	}
	t.updateRows(list)
	t.next.ListKind, t.next.listed, t.next.newest = list.Kind, list.RV, list.Newest()
	t.advance(list.RV)
	t.trim()
	t.publish()
	return true
}

// Difference returns the events that Replace would append, and changes nothing. reformed is
// set if objects that have not changed have another form, which the events do not have. ok is
// false if the list is of another history.
func (t *Timeline) Difference(list *scan.List) (events []*Event, reformed, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.diff(list)
}

// updateRows takes the list's Table rows for unchanged objects where its columns
// differ from those held. Under equal columns only cells that depend on the clock
// differ, except in custom resources: the definition may show other fields in
// columns of the same names.
func (t *Timeline) updateRows(list *scan.List) {
	for _, o := range list.Items {
		if held, ok := t.tree.Get(o); ok && held.RV == o.RV && (held.Columns != o.Columns || !o.Typed() && held.Row != o.Row) {
			t.tree.ReplaceOrInsert(o)
		}
	}
	if form := t.next.BookmarkTemplate; form.Columns != list.Columns {
		t.next.BookmarkTemplate = form.WithRow("", list.Columns) // until the next bookmark
	}
}

// maxGaps is how many gaps are remembered, including those below the window (see
// View.GapAround).
const maxGaps = 256

// addGap records a gap at the head. It extends the last gap if that ends here
// and no event has been appended since it began.
func (t *Timeline) addGap(g Gap) {
	if g.From == g.To {
		return
	}
	gaps := slices.Clone(t.next.gaps) // published views share the old slice
	if n := len(gaps); n > 0 && gaps[n-1].To == g.From && t.next.after(gaps[n-1].From) == len(t.next.log) {
		gaps[n-1].To = g.To
	} else {
		gaps = append(gaps, g)
	}
	gaps = gaps[max(0, len(gaps)-maxGaps):]
	t.next.gaps, t.wakeAll = gaps, true
}

// A deletion is one that was not observed, at an RV below the deadline.
type deletion struct {
	prev     *scan.Object
	deadline uint64
}

// diff returns the events that turn the objects held into those of the list, in
// RV order. ok is false if there are no such events: before the first list, or
// when the upstream's RVs went backwards. reformed is set if the same versions of
// objects have another form, as after a change of the schema of a custom resource.
func (t *Timeline) diff(list *scan.List) (events []*Event, reformed, ok bool) {
	head := t.next.RV
	if t.View() == nil || list.RV < head {
		return nil, false, false
	}
	var deletions []deletion
	listed := make(map[kube.Key]bool, len(list.Items))
	used := make(map[uint64]bool)
	for _, o := range list.Items {
		listed[o.Key] = true
		prev, _ := t.tree.Get(o)
		switch {
		case prev != nil && prev.RV == o.RV && prev.UID == o.UID && prev.ManagedFields() == o.ManagedFields():
			// Of one write: another one that got the RV in another history has another time there.
			reformed = reformed || prev.JSON != o.JSON
			continue
		case o.RV <= head || o.RV > list.RV || used[o.RV]:
			return nil, false, false // the list is of another history
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

	free := func(rv uint64) uint64 { // the first free RV ≥ rv
		for used[rv] {
			rv++
		}
		return rv
	}
	rv := head // of the previous deletion
	for _, d := range deletions {
		if next := free(rv + 1); next < d.deadline {
			rv = next
		} else if rv == head {
			return nil, false, false // there is no free RV
		}
		events = append(events, &Event{Type: kube.Deleted, RV: rv, Object: d.prev.At(rv), Prev: d.prev, Inferred: true})
	}
	slices.SortStableFunc(events, func(a, b *Event) int { return cmp.Compare(a.RV, b.RV) })
	return events, reformed, true
}
