// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"cmp"
	"fmt"
	"slices"
)

// A difference is how a stream deviates from the expected events; empty if it
// does not.
type difference struct {
	missing   string
	missingAt uint64 // the RV of what is missing
	invented  string
}

func (d difference) none() bool { return d.missing == "" && d.invented == "" }

// compare finds the first difference of a stream from the truth. Over a gap, the
// stream may instead carry the difference between the states at the gap's ends.
// Which gaps apply depends on the stream's epoch, and a stream that was passed
// through has none. The epoch is not known, so the best match counts.
func (h *history) compare(x *exchange) difference {
	from, ok := x.from()
	if !ok {
		return difference{}
	}
	t := h.truth(x)
	return h.compareWith(t, x, from)
}

// compareWith is compare with a given truth and start.
func (h *history) compareWith(t *truth, x *exchange, from uint64) difference {
	if from < t.base {
		return difference{invented: fmt.Sprintf("it starts at %d, before the round at %d", from, t.base)}
	}
	var got []event
	for _, e := range x.Events {
		if e.Type != "BOOKMARK" {
			got = append(got, e)
		}
	}
	best := t.compareTrue(x.Selector, got, from, x.place())
	if best.none() || x.Direct {
		return best
	}
	for _, e := range h.epochsWithRecord(x.Resource) {
		if e.Began.After(x.Ended) {
			continue
		}
		d := t.compareOver(e.Gaps, x.Selector, got, e.start(x, from), x.place())
		if d.none() {
			return d
		}
		// A stream that misses nothing, but has an invented event, came furthest.
		if best.missing != "" && (d.missing == "" || d.missingAt > best.missingAt) {
			best = d
		}
	}
	return best
}

// epochsWithRecord returns the epochs of the gateways, alone and with the gaps of the
// records from which they may have served a part of a stream. The record has most of a
// gateway's own gaps, too; of two that overlap, a stream shows one.
func (h *history) epochsWithRecord(resource string) []epoch {
	all := slices.Clone(h.epochs[resource])
	for _, recorded := range h.recorded[resource] {
		for _, e := range h.epochs[resource] {
			all = append(all, epoch{e.Began, mergeGaps(e.Gaps, recorded)}, epoch{e.Began, mergeGaps(recorded, e.Gaps)})
		}
	}
	return all
}

// mergeGaps returns the gaps of a, and those of b that overlap none of them.
func mergeGaps(a, b []gap) []gap {
	all := slices.Clone(a)
	for _, g := range b {
		if !slices.ContainsFunc(a, func(o gap) bool { return g.From < o.To && o.From < g.To }) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b gap) int { return cmp.Compare(a.From, b.From) })
	return all
}

// start returns the RV after which a stream began in the epoch. A watch from now
// on does not name its start. If its first event lies within a gap, the stream
// began where the gap begins: no stream begins inside a gap.
func (e epoch) start(x *exchange, from uint64) uint64 {
	for _, g := range e.Gaps {
		if x.Verb == byNow && g.From < from && from < g.To {
			return g.From
		}
	}
	return from
}

// compareTrue compares with the true events in (from, to].
func (t *truth) compareTrue(s selector, got []event, from, to uint64) difference {
	var d difference
	want := t.expected(s, from, to)
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && want[0].RV < got[0].RV:
			if d.missing == "" {
				d.missing, d.missingAt = fmt.Sprintf("%s is missing (it came to %d)", want[0], to), want[0].RV
			}
			want = want[1:]
		case len(want) == 0 || got[0].RV < want[0].RV:
			if d.invented == "" {
				d.invented = fmt.Sprintf("%s is invented: %s", got[0], got[0].Text)
			}
			got = got[1:]
		default:
			if got[0] != want[0] && d.invented == "" {
				d.invented = fmt.Sprintf("got\n%s %s\nwant\n%s %s", got[0], got[0].Text, want[0], want[0].Text)
			}
			got, want = got[1:], want[1:]
		}
	}
	return d
}

// compareOver compares with the events in (from, to], with gaps.
func (t *truth) compareOver(gaps []gap, s selector, got []event, from, to uint64) difference {
	at := from
	next := func(upTo uint64) (part []event) { // the events up to an RV
		n := 0
		for n < len(got) && got[n].RV <= upTo {
			n++
		}
		part, got = got[:n], got[n:]
		return part
	}
	for _, g := range gaps {
		if g.From < at || g.From >= to || g.From < t.base {
			continue // already passed, or the stream began inside it: no difference applies
		}
		if d := t.compareTrue(s, next(g.From), at, g.From); !d.none() {
			return d
		}
		part, end := next(g.To), min(g.To, to)
		if d := t.compareTrue(s, part, g.From, end); !d.none() {
			if d := t.compareGap(g, s, part, end); !d.none() {
				return d
			}
		}
		at = end
	}
	return t.compareTrue(s, got, at, to)
}

// A missed object is one whose deletion lies in a gap.
type missed struct {
	*version
	deadline uint64 // RV that its deletion has to be below
}

// compareGap compares with the difference between the states at the ends of a
// gap, as far as the stream came. An inferred deletion may have any RV inside the
// gap that no change has and that is below the RV of an object with the same name.
func (t *truth) compareGap(g gap, s selector, got []event, to uint64) difference {
	before, after := t.at(g.From), t.at(g.To)
	changes := map[uint64]event{}
	taken := map[uint64]bool{}
	deletions := map[string]missed{}
	for key, cur := range after {
		if cur.RV <= g.From {
			continue
		}
		taken[cur.RV] = true
		prev := before[key]
		if prev != nil && prev.UID != cur.UID {
			if s.matches(prev) {
				deletions[key] = missed{prev, cur.RV}
			}
			prev = nil
		}
		if e, ok := s.transition(prev, cur, cur.RV); ok {
			changes[cur.RV] = e
		}
	}
	for key, prev := range before {
		if after[key] == nil && s.matches(prev) {
			deletions[key] = missed{prev, g.To + 1}
		}
	}
	for _, e := range got {
		if want, ok := changes[e.RV]; ok {
			if want != e {
				return difference{invented: fmt.Sprintf("over the gap %v: got\n%s %s\nwant\n%s %s", g, e, e.Text, want, want.Text)}
			}
			delete(changes, e.RV)
			continue
		}
		gone, ok := deletions[e.Key]
		if !ok || e.Type != "DELETED" || taken[e.RV] || e.RV >= gone.deadline || e.Text != gone.at(e.RV) {
			return difference{invented: fmt.Sprintf("over the gap %v: %s is invented: %s", g, e, e.Text)}
		}
		taken[e.RV] = true
		delete(deletions, e.Key)
	}
	for rv, e := range changes {
		if rv <= to {
			return difference{missing: fmt.Sprintf("over the gap %v: %s is missing (it came to %d)", g, e, to), missingAt: rv}
		}
	}
	if to == g.To {
		for _, gone := range deletions {
			return difference{missing: fmt.Sprintf("over the gap %v: the deletion of %s is missing", g, gone.Key), missingAt: g.To}
		}
	}
	return difference{}
}
