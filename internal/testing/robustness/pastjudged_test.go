// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// noon is the time of RV 10 in TestPastReads; each RV is ten minutes later than
// the one before.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// observedStory is story with the time at which each version was observed.
func observedStory() *truth {
	s := story()
	for _, v := range s.versions {
		v.seen = noon.Add(time.Duration(v.RV-10) * 10 * time.Minute)
	}
	return s
}

// pastList is a correct read, which a test spoils.
func pastList(t *truth, s selector, rv uint64) *pastRead {
	k := known{From: 10, To: 18, Since: noon}
	return &pastRead{exchange: &exchange{Path: "/list", Selector: s, Code: 200, RV: rv, Items: t.expectedList(s, rv)}, Asked: rv, At: true, Before: k, After: k}
}

// pastTime is a correct read as of a time, in minutes after noon.
func pastTime(t *truth, minutes int, rv uint64) *pastRead {
	r := pastList(t, all, rv)
	r.Asked, r.When = 0, noon.Add(time.Duration(minutes)*time.Minute)
	return r
}

// gapOver adds the gap (12, 15).
func gapOver(r *pastRead) *pastRead {
	g := []pastGap{{gap{12, 15}, noon.Add(20 * time.Minute), noon.Add(50 * time.Minute)}}
	r.Before.Gaps, r.After.Gaps = g, g
	return r
}

// lateOver adds a late gap at 12.
func lateOver(r *pastRead) *pastRead {
	g := []pastGap{{gap{12, 12}, noon.Add(20 * time.Minute), noon.Add(30 * time.Minute)}}
	r.Before.Late, r.After.Late = g, g
	return r
}

const lateEnds = "x were not observed between 2026-01-02T12:20:00.000Z and 2026-01-02T12:30:00.000Z"

// refused replaces the response with 410.
func refused(r *pastRead, why string) *pastRead {
	r.Code, r.RV, r.Items, r.End = 410, 0, nil, "410 Gone: "+why
	return r
}

const retains = "x are recorded from 10 (2026-01-02T12:00:00.000Z) to 18 (2026-01-02T13:20:00.000Z)"

// TestPastReads shows which reads judgePast accepts, and that it rejects each
// wrong one.
func TestPastReads(t *testing.T) {
	s := observedStory()
	table := func(rv uint64) *pastRead {
		r := pastList(s, all, rv)
		for _, e := range r.Items {
			r.Cells = append(r.Cells, []any{strings.TrimPrefix(e.Key, "ns/"), "1"})
		}
		r.DirectCells = slices.Clone(r.Cells)
		return r
	}
	named := func(name string, rv uint64) *pastRead {
		r := pastList(s, newSelector("", "", "metadata.name="+name), rv)
		r.Selector, r.Name = all, "ns/"+name
		return r
	}
	ordinary := func(r *pastRead) *pastRead { r.At = false; return r }
	spoilt := func(r *pastRead, by func(*pastRead)) *pastRead { by(r); return r }
	for _, test := range []struct {
		name string
		r    *pastRead
		want string // part of the judgment, "" if correct
	}{
		{"a list", pastList(s, all, 14), ""},
		{"a list with a selector", pastList(s, reds, 12), ""},
		{"the oldest state", pastList(s, all, 10), ""},
		{"an object missing", spoilt(pastList(s, all, 14), func(r *pastRead) { r.Items = r.Items[:1] }), "missing"},
		{"an object that never changed missing", spoilt(pastList(s, all, 12), func(r *pastRead) { r.Items = r.Items[1:] }), "item 0"},
		{"an extra object", spoilt(pastList(s, reds, 14), func(r *pastRead) { r.Items = s.expectedList(all, 14) }), "item 0"},
		{"a deleted object", spoilt(pastList(s, all, 18), func(r *pastRead) { r.Items = s.expectedList(all, 17) }), "too much"},
		{"a stale version", spoilt(pastList(s, all, 14), func(r *pastRead) { r.Items[0] = s.expectedList(all, 11)[1] }), "item 0"},
		{"a later version", spoilt(pastList(s, all, 14), func(r *pastRead) { r.Items = s.expectedList(all, 15) }), "item 0"},
		{"other bytes", spoilt(pastList(s, all, 14), func(r *pastRead) { r.Items[0].Text += " " }), "item 0"},
		{"another order", spoilt(pastList(s, all, 14), func(r *pastRead) { slices.Reverse(r.Items) }), "item 0"},
		{"another RV than requested", spoilt(pastList(s, all, 14), func(r *pastRead) { r.Asked = 13 }), "a state at 14"},
		{"no list", spoilt(pastList(s, all, 14), func(r *pastRead) { r.Code = 503 }), "answered with 503"},
		{"refused without a reason", refused(pastList(s, all, 14), retains), "answered with 410"},

		{"a table", table(14), ""},
		{"a row missing", spoilt(table(14), func(r *pastRead) { r.Cells = r.Cells[:1] }), "1 rows of 2"},
		{"rows in another order", spoilt(table(14), func(r *pastRead) { slices.Reverse(r.Cells) }), "the row of b"},
		{"another cell than the API server's", spoilt(table(14), func(r *pastRead) { r.DirectCells[1] = []any{"c", "2"} }), "the rows are"},

		{"an object", named("b", 14), ""},
		{"an object that did not exist", spoilt(named("d", 14), func(r *pastRead) { r.Code = 404 }), ""},
		{"an object that is not found", spoilt(named("b", 14), func(r *pastRead) { r.Code = 404 }), "is not found"},
		{"an object that was deleted", spoilt(named("c", 18), func(r *pastRead) { r.Items = s.expectedList(all, 16)[2:3] }), "too much"},

		{"before what is retained", refused(pastList(s, all, 9), retains), ""},
		{"passed through, and refused", ordinary(refused(pastList(s, all, 9), "too old resource version: 9 (12)")), ""},
		{"passed through, and wrong", ordinary(spoilt(pastList(s, all, 9), func(r *pastRead) { r.Items = s.expectedList(all, 11) })), "item 1"},
		{"before what is retained, answered", pastList(s, all, 9), "before what is retained"},
		{"removed meanwhile", spoilt(refused(pastList(s, all, 12), retains), func(r *pastRead) { r.After.From = 13 }), ""},
		{"refused without the span", refused(pastList(s, all, 9), "gone"), "does not say what is retained"},
		{"refused with another span", refused(pastList(s, all, 9), "recorded from 3 to 18"), "does not say what is retained"},

		{"in a gap", refused(gapOver(pastList(s, all, 13)), "x were not observed between 12 and 15"), ""},
		{"at its start", gapOver(pastList(s, all, 12)), ""},
		{"at its end", gapOver(pastList(s, all, 15)), ""},
		{"in a gap, answered", gapOver(pastList(s, all, 13)), "in the gap"},
		{"in a gap, with the state before it", spoilt(ordinary(gapOver(pastList(s, all, 12))), func(r *pastRead) { r.RV, r.Asked = 13, 13 }), "item 0"},
		{"in a gap, without its ends", refused(gapOver(pastList(s, all, 13)), retains), "does not say 12"},
		{"at its end, refused", refused(gapOver(pastList(s, all, 15)), retains), "answered with 410"},

		{"at a time", pastTime(s, 25, 12), ""},
		{"at a time before the first change", spoilt(pastTime(s, 5, 10), func(r *pastRead) { r.RV = 10 }), ""},
		{"a state before the time", pastTime(s, 25, 11), "changed at 12"},
		{"a state after the time", pastTime(s, 25, 13), "changed at 13"},
		{"at a time, an object missing", spoilt(pastTime(s, 25, 12), func(r *pastRead) { r.Items = r.Items[1:] }), "item 0"},
		{"at a time before the recording", refused(spoilt(pastTime(s, -1, 0), func(r *pastRead) {}), retains), ""},
		{"at a time before the recording, answered", pastTime(s, -1, 10), "before what is retained since"},
		{"at a time, refused", refused(pastTime(s, 25, 12), retains), "answered with 410"},
		{"at a time in a gap", refused(gapOver(pastTime(s, 30, 12)), "x were not observed between 12 and 15"), ""},
		{"at a time in a gap, without its ends", refused(gapOver(pastTime(s, 30, 12)), retains), "does not say 12"},
		{"at a time in a gap, answered", gapOver(pastTime(s, 30, 12)), "in the gap"},
		{"at a time in a late gap", refused(lateOver(pastTime(s, 25, 12)), lateEnds), ""},
		{"at a time in a late gap, without its ends", refused(lateOver(pastTime(s, 25, 12)), retains), "does not say 2026-01-02T12:20:00.000Z"},
		{"at a time in a late gap, answered", lateOver(pastTime(s, 25, 12)), "in the late gap"},
		{"at the end of a late gap", lateOver(pastTime(s, 30, 13)), ""},
		{"at an RV in a late gap", lateOver(pastList(s, all, 12)), ""},
		{"at an RV in a late gap, refused", refused(lateOver(pastList(s, all, 12)), lateEnds), "answered with 410"},
		{"at a time in a downtime", pastTime(s, 75, 16), ""},
		{"at a time in a downtime, a state long before", pastTime(s, 75, 14), "changed at 15"},
		{"at a time in a downtime, a state after", pastTime(s, 75, 18), "changed at 18"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := s.judgePast(test.r, []downtime{{noon.Add(65 * time.Minute), noon.Add(78 * time.Minute)}})
			if got != test.want && (test.want == "" || !strings.Contains(got, test.want)) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// TestPastWatches shows the same for watches from a past RV.
func TestPastWatches(t *testing.T) {
	s := story()
	gone := watch(s, all, 12, 18)
	gone.Code, gone.End = 410, retains
	for _, test := range []struct {
		name string
		w    *exchange
		gaps []gap
		want bool
	}{
		{"all of it", watch(s, all, 12, 18), nil, true},
		{"a selector", watch(s, reds, 10, 18), nil, true},
		{"over a gap", with(watch(s, all, 10, 18), append(over(s), mark(18))...), []gap{{10, 18}}, true},
		{"over a gap that does not exist", with(watch(s, all, 10, 18), append(over(s), mark(18))...), nil, false},
		{"an event lost", with(watch(s, all, 10, 18), slices.Delete(s.expected(all, 10, 18), 3, 4)...), nil, false},
		{"an event twice", with(watch(s, all, 10, 18), slices.Insert(s.expected(all, 10, 18), 3, s.expected(all, 12, 13)...)...), nil, false},
		{"two events in another order", with(watch(s, all, 10, 18), swapped(s.expected(all, 10, 18))...), nil, false},
		{"an event before the start", with(watch(s, all, 12, 18), s.expected(all, 11, 18)...), nil, false},
		{"a transition lost", with(watch(s, reds, 10, 18), slices.DeleteFunc(s.expected(reds, 10, 18), func(e event) bool { return e.RV == 14 })...), nil, false},
		{"another transition", with(watch(s, reds, 10, 18), s.expected(all, 10, 18)...), nil, false},
		{"it stops", with(watch(s, all, 12, 18), s.expected(all, 12, 15)...), nil, false},
		{"it is refused", gone, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := historyOf(s, test.gaps, test.w)
			h.final, h.whole = map[string]uint64{"x": 18}, true
			if got := judgePastWatches(h); (len(got) == 0) != test.want {
				t.Errorf("found %v", got)
			}
		})
	}
}

// TestExpiredInGap: only a watch from inside a gap may get 410, and only before any
// event.
func TestExpiredInGap(t *testing.T) {
	s := story()
	gaps := []pastGap{{gap: gap{12, 15}}}
	expired := func(from uint64, events ...event) *client {
		x := with(watch(s, all, from, 18), events...)
		x.Error = 410
		return &client{exchanges: []*exchange{watch(s, all, 10, from), x}}
	}
	for _, test := range []struct {
		name string
		c    *client
		want bool
	}{
		{"inside", expired(13), true},
		{"after a bookmark at its start", expired(13, event{Type: "BOOKMARK", RV: 13}), true},
		{"at its start", expired(12), false},
		{"at its end", expired(15), false},
		{"after events", expired(13, s.expected(all, 13, 14)...), false},
	} {
		if got := test.c.expiredInGap(gaps); got != test.want || len(test.c.exchanges) == 2 == test.want {
			t.Errorf("%s: %v, with %d exchanges", test.name, got, len(test.c.exchanges))
		}
	}
	for base, want := range map[string]bool{"http://gateway/at/rv:10": true, "http://gateway": false} {
		c := expired(13)
		c.base, c.exchanges[1].Error, c.exchanges[1].Code = base, 0, 410
		if c.expiredInGap(gaps) != want {
			t.Errorf("a watch that is refused at %s: expired in a gap is not %v", base, want)
		}
	}
	if c := expired(13); c.exchanges[1].Error == 410 {
		if c.exchanges[1].Error = 0; c.expiredInGap(gaps) {
			t.Error("a served watch is expired in a gap")
		}
	}
}

func swapped(events []event) []event {
	events[1], events[2] = events[2], events[1]
	return events
}
