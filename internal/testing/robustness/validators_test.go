// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// story is the truth of the histories below, with objects a to d:
//
//	RV      10    11     12     13     14     15     16     17     18
//	   a,b  │     b red  c      a gone b blue a new  d      c gone d gone
//	   held │
func story() *truth {
	t := &truth{base: 10, start: map[string]*version{}}
	change := t.change
	change("a", "a1", "red", 3)
	change("b", "b1", "green", 4)
	change("b", "b1", "red", 11)
	change("c", "c1", "red", 12)
	change("a", "a1", "", 13)
	change("b", "b1", "blue", 14)
	change("a", "a2", "red", 15)
	change("d", "d1", "green", 16)
	change("c", "c1", "", 17)
	change("d", "d1", "", 18)
	return t
}

// change adds a change of an object to the truth; without a tier it is a deletion.
func (t *truth) change(name, uid, tier string, rv uint64) {
	v := &version{RV: rv, Key: "ns/" + name, UID: uid, prev: t.at(rv)["ns/"+name]}
	if tier == "" {
		v.Deleted, v.JSON = true, v.prev.at(rv)
	} else {
		v.JSON = fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","uid":%q,"resourceVersion":"%d","labels":{"tier":%q}}}`, name, uid, rv, tier)
		if err := v.index(); err != nil {
			panic(err)
		}
	}
	if rv <= t.base {
		t.start[v.Key] = v
	} else {
		t.versions = append(t.versions, v)
	}
}

var (
	all  = newSelector("", "", "")
	reds = newSelector("", "tier=red", "")
	ds   = newSelector("", "", "metadata.name=d")
)

func mark(rv uint64) event { return event{Type: "BOOKMARK", RV: rv} }

// list and watch return correct exchanges; a test spoils them.
func list(t *truth, s selector, rv uint64) *exchange {
	return &exchange{Verb: byList, Resource: "x", Selector: s, Code: 200, RV: rv, Items: t.expectedList(s, rv), End: "whole"}
}

func watch(t *truth, s selector, from, to uint64) *exchange {
	return &exchange{Verb: resumed, Resource: "x", Selector: s, Code: 200, Start: from, Bookmarks: true, Events: t.expected(s, from, to), End: "EOF"}
}

func with(x *exchange, events ...event) *exchange { x.Events = events; return x }

// historyOf returns the history of one client with the exchanges.
func historyOf(t *truth, gaps []gap, xs ...*exchange) *history {
	c := &client{name: "c", resource: "x", sel: xs[0].Selector, exchanges: xs}
	for _, x := range xs {
		c.rv = max(c.rv, x.place())
	}
	return &history{
		truths: map[string]*truth{"x": t}, clients: []*client{c},
		epochs: map[string][]epoch{"x": {{Gaps: gaps}}},
	}
}

// verdicts returns the names of the validators that reject a history.
func verdicts(h *history) (names []string) {
	for _, v := range validators {
		if len(v.judge(h)) > 0 {
			names = append(names, v.name)
		}
	}
	return names
}

// over is the difference over the gap (10, 18], as in ADR 2: a is a new object, b
// changed. The deletion of the old a is at 11, an RV of its own.
func over(t *truth) []event {
	old, now := t.at(10), t.at(18)
	return []event{
		{"DELETED", 11, "ns/a", "a1", old["ns/a"].at(11)},
		{"MODIFIED", 14, "ns/b", "b1", now["ns/b"].JSON},
		{"ADDED", 15, "ns/a", "a2", now["ns/a"].JSON},
	}
}

// watchFromNow is a watch from now on, which began at 10 and crossed the gap (10, 18];
// its first event is the deletion of a, at 12.
func watchFromNow(t *truth) *exchange {
	events := over(t)
	events[0].RV, events[0].Text = 12, t.at(10)["ns/a"].at(12)
	return &exchange{Verb: byNow, Resource: "x", Selector: all, Code: 200, Bookmarks: true, Events: append(events, mark(18)), End: "EOF"}
}

func TestGoodHistories(t *testing.T) {
	s := story()
	noDifference := historyOf(s, []gap{{15, 18}}, list(s, ds, 10), watch(s, ds, 10, 15))
	noDifference.final = map[string]uint64{"x": 18}
	for name, h := range map[string]*history{
		"over a gap without a matching difference": noDifference,
		"everything":               historyOf(s, nil, list(s, all, 10), watch(s, all, 10, 14), watch(s, all, 14, 18)),
		"a selector":               historyOf(s, nil, list(s, reds, 10), watch(s, reds, 10, 18)),
		"bookmarks":                historyOf(s, nil, list(s, all, 10), with(watch(s, all, 10, 11), append(s.expected(all, 10, 11), mark(11), mark(11))...), watch(s, all, 11, 18)),
		"over a gap":               historyOf(s, []gap{{10, 18}}, list(s, all, 10), with(watch(s, all, 10, 18), append(over(s), mark(18))...)),
		"a part of the gap":        historyOf(s, []gap{{10, 18}}, list(s, all, 10), with(watch(s, all, 10, 14), over(s)[:2]...), list(s, all, 18)),
		"from now on, over a gap":  historyOf(s, []gap{{10, 18}}, watchFromNow(s)),
		"through the gap, in full": historyOf(s, []gap{{10, 18}}, list(s, all, 10), watch(s, all, 10, 18)),
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range validators {
				for _, violation := range v.judge(h) {
					t.Errorf("%s: %s", v.name, violation)
				}
			}
		})
	}
}

// TestBadHistories shows that each validator rejects violations of its guarantee.
func TestBadHistories(t *testing.T) {
	s := story()
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shown := map[string]bool{} // names of validators
	type spoil func(l, w *exchange, h *history)
	for _, test := range []struct {
		name string
		sel  selector
		by   spoil
		want string // validators that have to reject it; others may
	}{
		{"two events in the wrong order", all, func(_, w *exchange, _ *history) { w.Events[1], w.Events[2] = w.Events[2], w.Events[1] }, "ordered"},
		{"an event at the start", all, func(_, w *exchange, _ *history) { w.Events = append(s.expected(all, 9, 10), w.Events...); w.Start = 11 }, "ordered truthful"},
		{"a list out of order", all, func(l, _ *exchange, _ *history) { slices.Reverse(l.Items) }, "ordered consistent"},
		{"an item newer than its list", all, func(l, _ *exchange, _ *history) { l.Items = s.expectedList(all, 11) }, "ordered consistent"},
		{"a deletion among the initial events", all, func(l, _ *exchange, _ *history) { l.Verb, l.Items[0].Type = byWatchList, "DELETED" }, "ordered consistent"},
		{"an event twice on a stream", all, func(_, w *exchange, _ *history) { w.Events = slices.Insert(w.Events, 1, w.Events[0]) }, "ordered unique truthful"},
		{"an event again after a resume", all, func(_, w *exchange, h *history) {
			again := watch(s, all, 17, 18)
			again.Events = append(s.expected(all, 16, 17), again.Events...)
			h.clients[0].exchanges = append(h.clients[0].exchanges, again)
		}, "ordered unique truthful"},
		{"one of two events at one RV", all, func(_, w *exchange, h *history) {
			both := story()
			both.versions[len(both.versions)-1].RV = 17
			h.truths["x"] = both
			w.Events[len(w.Events)-1] = mark(17)
		}, "atomic reliable"},
		{"an event missing", all, func(_, w *exchange, _ *history) { w.Events = slices.Delete(w.Events, 2, 3) }, "reliable"},
		{"an event missing at the end, below a bookmark", all, func(_, w *exchange, _ *history) { w.Events[7] = mark(18) }, "reliable converging"},
		{"an object that stops matching", reds, func(_, w *exchange, _ *history) {
			w.Events = slices.DeleteFunc(w.Events, func(e event) bool { return e.RV == 14 })
		}, "reliable converging"},
		{"the first event missing after a resume", all, func(_, w *exchange, _ *history) { w.Events = w.Events[1:] }, "resumable reliable"},
		{"a bookmark too early", all, func(_, w *exchange, _ *history) { w.Events = slices.Insert(w.Events, 3, mark(15)) }, "bookmarkable ordered"},
		{"a bookmark that goes back", all, func(_, w *exchange, _ *history) { w.Events = append(w.Events, mark(30), mark(20)) }, "bookmarkable ordered"},
		{"a bookmark at the start", all, func(_, w *exchange, _ *history) { w.Events = append([]event{mark(10)}, w.Events...) }, "bookmarkable"},
		{"a bookmark that was not requested", all, func(_, w *exchange, _ *history) { w.Bookmarks = false; w.Events = append(w.Events, mark(30)) }, "bookmarkable"},
		{"other bytes", all, func(_, w *exchange, _ *history) {
			w.Events[1].Text = strings.Replace(w.Events[1].Text, `"red"`, `"RED"`, 1)
		}, "truthful"},
		{"another type", all, func(_, w *exchange, _ *history) { w.Events[1].Type = "MODIFIED" }, "truthful"},
		{"a transition with the new state", reds, func(_, w *exchange, _ *history) {
			for i, e := range w.Events {
				if e.RV == 14 {
					w.Events[i].Text = s.at(14)["ns/b"].JSON
				}
			}
		}, "truthful"},
		{"a deletion at another RV", all, func(_, w *exchange, _ *history) { w.Events[7].RV = 19 }, "truthful reliable"},
		{"an event of another namespace", all, func(l, w *exchange, h *history) {
			sel := newSelector("other", "", "")
			l.Selector, w.Selector, l.Items, h.clients[0].sel = sel, sel, nil, sel
		}, "truthful"},
		{"an inferred deletion with the RV of another event", all, func(_, w *exchange, h *history) {
			h.epochs["x"][0].Gaps = []gap{{10, 18}}
			w.Events = over(s)
			w.Events[0].RV = 14
		}, "truthful ordered"},
		{"a deletion after the successor, over a gap", all, func(_, w *exchange, h *history) {
			h.epochs["x"][0].Gaps = []gap{{10, 18}}
			o := over(s)
			o[0].RV, o[0].Text = 16, s.at(10)["ns/a"].at(16)
			w.Events = []event{o[1], o[2], o[0]}
		}, "truthful converging"},
		{"a deletion missing over a gap", all, func(_, w *exchange, h *history) {
			h.epochs["x"][0].Gaps = []gap{{10, 18}}
			w.Events = append(over(s)[1:], mark(18))
		}, "reliable"},
		{"a change missing over a gap", all, func(_, w *exchange, h *history) {
			h.epochs["x"][0].Gaps = []gap{{10, 18}}
			w.Events = slices.Delete(append(over(s), mark(18)), 1, 2)
		}, "reliable converging"},
		{"an unknown gap", all, func(_, w *exchange, _ *history) { w.Events = append(over(s), mark(18)) }, "reliable truthful"},
		{"a gap before a client of the API server", all, func(_, w *exchange, h *history) {
			h.epochs["x"][0].Gaps = []gap{{10, 18}}
			w.Events, w.Direct = append(over(s), mark(18)), true
		}, "reliable truthful"},
		{"a change missing over a gap in which the stream begins", all, func(l, w *exchange, h *history) {
			h.epochs["x"][0].Gaps = []gap{{10, 18}}
			n := watchFromNow(s)
			n.Events = slices.Delete(n.Events, 1, 2)
			h.clients[0].exchanges = []*exchange{l, n}
		}, "reliable"},
		{"a client that stops before a gap", all, func(_, w *exchange, h *history) {
			h.epochs["x"][0].Gaps = []gap{{10, 14}}
			h.final, h.clients[0].rv, w.Events = map[string]uint64{"x": 18}, 10, nil
		}, "converging"},
		{"a client that lacks the difference over a gap", all, func(_, w *exchange, h *history) {
			h.epochs["x"][0].Gaps = []gap{{10, 18}}
			h.final, h.clients[0].rv, w.Events = map[string]uint64{"x": 18}, 10, nil
		}, "converging"},
		{"an item missing", all, func(l, _ *exchange, _ *history) { l.Items = l.Items[1:] }, "consistent"},
		{"an item too many", all, func(l, _ *exchange, _ *history) {
			l.Items = append(l.Items, event{"ADDED", 9, "ns/z", "z", "{}"})
		}, "consistent converging"},
		{"an old item", all, func(l, _ *exchange, _ *history) { l.Items[0].RV = 2 }, "consistent"},
		{"a list from before", all, func(l, _ *exchange, _ *history) { l.RV = 9 }, "consistent"},
		{"a client that lacks the last event", all, func(_, w *exchange, h *history) {
			h.final, h.clients[0].rv, w.Events = map[string]uint64{"x": 20}, 17, w.Events[:7]
		}, "converging"},
		{"a client that did nothing", all, func(_, _ *exchange, h *history) { h.clients[0].exchanges = nil }, "converging"},
		{"a write that a later list does not have", all, func(l, _ *exchange, h *history) {
			l.Began = day
			h.acks = []ack{{At: day.Add(-time.Second), Resource: "x", RV: 12}}
		}, "fresh"},
		{"a deletion that a later list does not have", all, func(l, _ *exchange, h *history) {
			l.Began = day
			h.acks = []ack{{At: day.Add(-time.Second), Resource: "x", Deleted: "d1"}}
		}, "fresh"},
		{"an event from before a watch from now on", all, func(_, w *exchange, h *history) {
			w.Verb, w.Start, w.Began = byNow, 0, day
			h.acks = []ack{{At: day.Add(-time.Second), Resource: "x", RV: 11}}
		}, "fresh"},
		{"a request refused", all, func(l, _ *exchange, _ *history) { l.Code = 403 }, "documented"},
		{"a request refused after the API server was ready", all, func(l, _ *exchange, h *history) {
			l.Code, l.Began, l.Ended = 403, day.Add(time.Second), day.Add(time.Minute)
			h.refusing = []timeSpan{{day.Add(-time.Minute), day}, {day.Add(time.Hour), day.Add(2 * time.Hour)}}
		}, "documented"},
		{"a request of the API server's own client refused", all, func(l, _ *exchange, h *history) {
			l.Code, l.Began, l.Ended, l.Direct = 403, day, day.Add(time.Second), true
			h.refusing = []timeSpan{{day, day.Add(time.Second)}}
		}, "documented"},
		{"a watch whose right was not confirmed", all, func(_, _ *exchange, h *history) {
			h.revoked = revoked([]string{"a\n", `level=INFO msg="watches end, because their right was not confirmed" user=u` + "\nb\n"})
		}, "granted"},
		{"half a frame", all, func(_, w *exchange, _ *history) {
			w.Events = append(w.Events, event{Type: "MALFORMED", RV: 20, Text: "{"})
		}, "documented"},
		{"ERROR 400", all, func(_, w *exchange, _ *history) { w.Error = 400; w.End = "ERROR 400" }, "documented"},
		{"410 without a reason", all, func(_, w *exchange, h *history) { w.Error, h.whole = 410, true }, "steady"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, w := list(s, test.sel, 10), watch(s, test.sel, 10, 18)
			h := historyOf(s, nil, l, w)
			if got := verdicts(h); got != nil {
				t.Fatalf("the unspoiled history is rejected by %v", got)
			}
			test.by(l, w, h)
			got := verdicts(h)
			for _, name := range strings.Fields(test.want) {
				shown[name] = true
				if !slices.Contains(got, name) {
					t.Errorf("%s accepts it; rejected by %v", name, got)
				}
			}
		})
	}
	for _, v := range validators {
		if !shown[v.name] {
			t.Errorf("no case shows that %s can fail", v.name)
		}
	}
}

// TestRefusedBeforeReady: in shared mode, an API server that is not ready yet may refuse.
func TestRefusedBeforeReady(t *testing.T) {
	day := time.Now()
	x := &exchange{Code: 403, Began: day, Ended: day.Add(time.Second)}
	h := &history{refusing: []timeSpan{{day.Add(-time.Minute), day}}}
	if what := documented(h, x); what != "" {
		t.Error(what)
	}
	if x.Code = 401; documented(h, x) == "" {
		t.Error("401 is accepted")
	}
}
