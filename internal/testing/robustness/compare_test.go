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
	missing  string
	invented string
	at       uint64 // the RV of the first of both
}

func (d difference) none() bool { return d.missing == "" && d.invented == "" }

// differ notes the RV of a difference.
func (d *difference) differ(rv uint64) {
	if d.none() {
		d.at = rv
	}
}

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
	for _, e := range h.epochsOf(x) {
		d := t.compareOver(e.Gaps, x.Selector, got, e.start(x, from), x.place())
		if d.none() {
			return d
		}
		if d.at > best.at {
			best = d
		}
	}
	return best
}

// epochsOf returns the epochs that an exchange may be of. If it may be of several
// gateways, or partly from a record, there is one that has all gaps.
func (h *history) epochsOf(x *exchange) (all []epoch) {
	for _, e := range h.epochs[x.Resource] {
		if !e.Began.After(x.Ended) {
			all = append(all, e)
		}
	}
	if recorded := h.recorded[x.Resource]; len(recorded) > 0 || x.Joined {
		joined := epoch{Gaps: slices.Clone(recorded)}
		for _, e := range all {
			joined.Gaps = append(joined.Gaps, e.Gaps...)
		}
		slices.SortFunc(joined.Gaps, func(a, b gap) int { return cmp.Compare(a.From, b.From) })
		all = append(all, joined)
	}
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
			if d.differ(want[0].RV); d.missing == "" {
				d.missing = fmt.Sprintf("%s is missing (it came to %d)", want[0], to)
			}
			want = want[1:]
		case len(want) == 0 || got[0].RV < want[0].RV:
			if d.differ(got[0].RV); d.invented == "" {
				d.invented = fmt.Sprintf("%s is invented: %s", got[0], got[0].Text)
			}
			got = got[1:]
		default:
			if got[0] == want[0] {
				// as it should be
			} else if d.differ(got[0].RV); d.invented == "" {
				d.invented = fmt.Sprintf("got\n%s %s\nwant\n%s %s", got[0], got[0].Text, want[0], want[0].Text)
			}
			got, want = got[1:], want[1:]
		}
	}
	return d
}

// compareOver compares with the events in (from, to], with gaps: a stream may show each
// gap, or its true events. No stream begins inside a gap.
func (t *truth) compareOver(gaps []gap, s selector, got []event, from, to uint64) difference {
	first := t.compareTrue(s, got, from, to)
	best := first
	for _, g := range gaps {
		if first.none() {
			return first
		}
		if g.From < max(from, t.base) || g.From >= first.at || first.at > g.To {
			continue // the first difference is outside the gap
		}
		upTo := func(rv uint64) int {
			n := 0
			for n < len(got) && got[n].RV <= rv {
				n++
			}
			return n
		}
		end := min(g.To, to)
		d := t.compareGap(g, s, got[upTo(g.From):upTo(g.To)], end)
		if d.none() {
			d = t.compareOver(gaps, s, got[upTo(g.To):], end, to)
		}
		if d.none() {
			return d
		}
		if d.at > best.at {
			best = d
		}
	}
	return best
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
				return difference{at: e.RV, invented: fmt.Sprintf("over the gap %v: got\n%s %s\nwant\n%s %s", g, e, e.Text, want, want.Text)}
			}
			delete(changes, e.RV)
			continue
		}
		gone, ok := deletions[e.Key]
		if !ok || e.Type != "DELETED" || taken[e.RV] || e.RV >= gone.deadline || e.Text != gone.at(e.RV) {
			return difference{at: e.RV, invented: fmt.Sprintf("over the gap %v: %s is invented: %s", g, e, e.Text)}
		}
		taken[e.RV] = true
		delete(deletions, e.Key)
	}
	for rv, e := range changes {
		if rv <= to {
			return difference{missing: fmt.Sprintf("over the gap %v: %s is missing (it came to %d)", g, e, to), at: rv}
		}
	}
	if to == g.To {
		for _, gone := range deletions {
			return difference{missing: fmt.Sprintf("over the gap %v: the deletion of %s is missing", g, gone.Key), at: g.To}
		}
	}
	return difference{}
}
