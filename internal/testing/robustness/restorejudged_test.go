// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
)

// restoredStory returns the truth after etcd was restored from a backup at 13. The
// API server was down from second 10 to 12:
//
//	RV          10    11     12     13      14     15     16     17     18
//	first      a,b  │ b red  c      a gone  b blue a new  d      c gone d gone
//	restored   a,b  │ b red  c      a gone              e red         b green
//
// After a bumped restore, the last two are at 1016 and 1018.
func restoredStory(bump uint64) *truth {
	first := story()
	first.ended, first.head = second(10), 18
	t := &truth{base: first.base, start: first.start, earlier: first, backup: 13, began: second(12), bumped: bump > 0}
	t.versions = slices.Clone(first.own(first.base, 13))
	t.change("e", "e1", "red", 16+bump)
	t.change("b", "b1", "green", 18+bump)
	return t
}

// second returns a time.
func second(n int) time.Time { return time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC) }

// during sets the times of an exchange, in seconds.
func during(from, to int, x *exchange) *exchange {
	x.Began, x.Ended = second(from), second(to)
	return x
}

// verb sets how an exchange began.
func verb(name string, x *exchange) *exchange {
	x.Verb = name
	return x
}

func answeredAt(at int, x *exchange) *exchange {
	x.Answered = second(at)
	return x
}

func expiredAt(to int, x *exchange) *exchange {
	x.Ended, x.Error, x.End = second(to), 410, "ERROR 410"
	return x
}

// mixed returns a watch with the events of two truths.
func mixed(a *truth, from, to uint64, b *truth, upTo uint64) *exchange {
	return with(watch(a, all, from, to), append(a.expected(all, from, to), b.expected(all, to, upTo)...)...)
}

// TestRestores judges histories in which etcd was restored.
func TestRestores(t *testing.T) {
	const bump = 1000
	first := story()
	plain, bumped := restoredStory(0), restoredStory(bump)
	before := func() []*exchange { // a client of the first truth
		return []*exchange{during(0, 1, list(first, all, 10)), during(1, 9, watch(first, all, 10, 18))}
	}
	late := list(first, all, 12)
	late.Items = first.expectedList(all, 16)
	late.RV = 16
	spread := verb(byPages, during(6, 13, list(first, all, 14)))
	spread.Items = append(spread.Items[:1], plain.expectedList(all, 14)[1:]...)
	contradiction := []gap{{16, 18}}
	for name, test := range map[string]struct {
		truth *truth
		gaps  []gap
		xs    []*exchange
		want  string // validators that have to reject it, others may; "" is a good history
	}{
		"a stream that ends, and a list": {plain, nil, append(before(),
			expiredAt(13, during(9, 13, watch(first, all, 18, 18))), during(13, 14, list(plain, all, 16)), during(14, 20, watch(plain, all, 16, 18))), ""},
		"the same, with a bump": {bumped, nil, append(before(),
			expiredAt(13, during(9, 13, watch(first, all, 18, 18))), during(13, 14, list(bumped, all, 1016)), during(14, 20, watch(bumped, all, 1016, 1018))), ""},
		"a list at any RV from before the restore": {plain, nil, []*exchange{verb(byList0, during(13, 14, late)),
			expiredAt(16, during(14, 16, watch(first, all, 16, 17))), during(17, 18, list(plain, all, 18))}, ""},
		"a stream that had only what both have":                 {plain, nil, []*exchange{during(0, 1, list(first, all, 10)), during(1, 20, watch(plain, all, 10, 18))}, ""},
		"a client that resumes and is not told":                 {plain, nil, append(before()[:1], during(1, 9, watch(first, all, 10, 17)), during(13, 20, watch(plain, all, 17, 18))), ""},
		"a client that is answered after the restore":           {plain, nil, append(before()[:1], during(1, 9, watch(first, all, 10, 17)), answeredAt(13, during(9, 20, watch(plain, all, 17, 18)))), ""},
		"a client that is answered before, and shows the other": {plain, nil, append(before()[:1], during(1, 9, watch(first, all, 10, 17)), answeredAt(9, during(9, 20, watch(plain, all, 17, 18)))), "converging"},
		"over a gap":                                   {plain, []gap{{14, 18}}, []*exchange{during(0, 1, list(first, all, 10)), during(1, 20, acrossGap(first, 14, plain))}, ""},
		"over a gap, with a bump":                      {bumped, []gap{{14, 1018}}, []*exchange{during(0, 1, list(first, all, 10)), during(1, 20, acrossGap(first, 14, bumped))}, ""},
		"pages from before and after":                  {plain, nil, []*exchange{spread, during(13, 20, watch(plain, all, 14, 18))}, ""},
		"a stream of both":                             {plain, nil, append(before()[:1], during(1, 20, mixed(first, 10, 17, plain, 18))), "truthful converging"},
		"a stream of both, with a bump":                {bumped, nil, append(before()[:1], during(1, 20, mixed(first, 10, 18, bumped, 1018))), "truthful converging"},
		"a list of both":                               {plain, nil, []*exchange{during(13, 14, items(list(plain, all, 16), first.expectedList(all, 16))), during(14, 20, watch(plain, all, 16, 18))}, "consistent"},
		"a list of before, after the restore":          {plain, nil, []*exchange{during(13, 14, list(first, all, 16)), expiredAt(20, during(14, 20, watch(first, all, 16, 16))), during(20, 21, list(plain, all, 18))}, "consistent"},
		"a list of after, before the restore":          {plain, nil, []*exchange{during(3, 4, list(plain, all, 16)), during(14, 20, watch(plain, all, 16, 18))}, "consistent"},
		"RVs that there were not":                      {plain, nil, []*exchange{during(1, 2, list(first, all, 14)), during(2, 9, with(watch(first, all, 14, 18), append(first.expected(all, 14, 18), mark(19))...)), during(20, 21, list(plain, all, 18))}, "bookmarkable"},
		"a stream that goes on and shows nothing":      {plain, nil, append(before()[:1], during(1, 20, watch(first, all, 10, 18))), "converging"},
		"a client that resumes after a bump":           {bumped, nil, append(before(), during(13, 20, watch(bumped, all, 18, 1018))), "converging"},
		"over a gap whose list is of another history":  {plain, contradiction, append(before()[:1], during(1, 20, acrossGap(first, 16, plain))), "truthful"},
		"a client of the API server, over a gap":       {plain, []gap{{14, 18}}, []*exchange{during(0, 1, list(first, all, 10)), direct(during(1, 20, acrossGap(first, 14, plain)))}, "truthful"},
		"a list that lacks a write after the restore":  {plain, nil, []*exchange{during(15, 16, list(plain, all, 14)), during(16, 20, watch(plain, all, 14, 18))}, "fresh"},
		"a list that lacks a write before the restore": {plain, nil, []*exchange{during(8, 9, list(first, all, 14)), expiredAt(13, during(9, 13, watch(first, all, 14, 18))), during(13, 14, list(plain, all, 18))}, "fresh"},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(test.truth, test.gaps, test.xs...)
			h.final = map[string]uint64{"x": test.truth.versions[len(test.truth.versions)-1].RV}
			h.clients[0].rv = test.xs[len(test.xs)-1].place()
			h.acks = []ack{{At: second(7), Resource: "x", RV: 16}, {At: second(14), Resource: "x", RV: test.truth.versions[3].RV}}
			got := verdicts(h)
			for _, name := range strings.Fields(test.want) {
				if !slices.Contains(got, name) {
					t.Errorf("%s accepts it; rejected by %v", name, got)
				}
			}
			if test.want == "" {
				for _, v := range judge(h) {
					t.Error(v)
				}
			}
		})
	}
}

// TestGapThatWasRolledBack has a gap of before a restore, which hides nothing that is true
// after it, and one of after it, which does.
func TestGapThatWasRolledBack(t *testing.T) {
	plain := restoredStory(0)
	plain.change("f", "f1", "red", 19) // after the last write that is due
	for ended, good := range map[int]bool{5: true, 15: false} {
		h := historyOf(plain, nil, during(13, 14, list(plain, all, 16)), during(14, 20, watch(plain, all, 16, 18)))
		h.final = map[string]uint64{"x": 18}
		h.epochs["x"] = []epoch{{Gaps: []gap{{17, 20}}, Ended: []time.Time{second(ended)}}}
		if all := judge(h); good != (len(all) == 0) {
			t.Errorf("with a gap that ended at %d: %v", ended, all)
		}
	}
}

// acrossGap is a watch from 10 of one truth that has crossed a gap to the end of another.
func acrossGap(a *truth, from uint64, b *truth) *exchange {
	events := a.expected(all, 10, from)
	before, end := a.at(from), b.versions[len(b.versions)-1].RV
	free := from + 1
	for key, v := range before {
		if b.at(end)[key] == nil {
			events = append(events, event{"DELETED", free, key, v.UID, v.at(free)})
			free++
		}
	}
	for _, v := range b.own(from, end) {
		if e, ok := all.transition(before[v.Key], v, v.RV); ok && b.at(end)[v.Key] == v {
			events = append(events, e)
		}
	}
	return with(watch(a, all, 10, 10), append(events, mark(end))...)
}

func items(x *exchange, items []event) *exchange { x.Items = items; return x }

func direct(x *exchange) *exchange { x.Direct = true; return x }

// TestCopyInGap: the last copy of an informer may have a part of the difference over a
// gap. It is no state, and the copy before it need not be that of the end.
func TestCopyInGap(t *testing.T) {
	const bump = 1000
	bumped := restoredStory(bump)
	first := bumped.earlier
	src, err := informer.FromURL("http://127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	before := sample{at: second(5), rv: 14, objects: first.expectedList(all, 14)}
	part := sample{at: second(20), rv: 16 + bump, objects: bumped.expectedList(all, 16+bump)[1:]}
	after := sample{at: second(21), rv: 18 + bump, objects: bumped.expectedList(all, 18+bump)}
	partOfFirst := sample{at: second(8), rv: 16, objects: first.expectedList(all, 16)[1:]}
	over := epoch{Gaps: []gap{{14, 18 + bump}}, Ended: []time.Time{second(15)}}
	rolledBack := epoch{Gaps: []gap{{14, 18}}, Ended: []time.Time{second(7)}}
	for what, test := range map[string]struct {
		gap     epoch
		samples []sample
		direct  bool
		wrong   bool
	}{
		"inside, in the end":                  {over, []sample{before, part}, false, false},
		"inside, on the way":                  {over, []sample{before, part, after}, false, false},
		"none inside":                         {over, []sample{before}, false, true},
		"inside one that was rolled back":     {rolledBack, []sample{before, partOfFirst, after}, false, false},
		"a part, before any gap":              {over, []sample{before, partOfFirst, after}, false, true},
		"a part, in a copy of the API server": {rolledBack, []sample{before, partOfFirst, after}, true, true},
	} {
		h := historyOf(bumped, nil, list(first, all, 14))
		h.truths["configmaps"], h.epochs["configmaps"] = bumped, []epoch{test.gap}
		c := newInformed("i", src, test.direct, &texts{})
		c.samples = test.samples
		h.clients = c.judged(h)[:1]
		if got := verdicts(h); (len(got) > 0) != test.wrong {
			t.Errorf("%s: %v", what, got)
		}
	}
}
