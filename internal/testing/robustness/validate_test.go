// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A validator judges a history by one guarantee, and returns the violations.
type validator struct {
	name  string
	judge func(*history) []violation
}

// validators are all guarantees. The first six are named as etcd's.
var validators = []validator{
	{"ordered", each(ordered)},
	{"unique", chains(unique)},
	{"atomic", each(atomic)},
	{"reliable", streams(reliable)},
	{"resumable", streams(resumable)},
	{"bookmarkable", each(bookmarkable)},
	{"truthful", streams(truthful)},
	{"consistent", each(consistent)},
	{"converging", converging},
	{"fresh", each(fresh)},
	{"documented", each(documented)},
	{"steady", each(steady)},
	{"granted", granted},
}

// each makes a validator from a judge of single exchanges.
func each(judge func(*history, *exchange) string) func(*history) []violation {
	return func(h *history) (all []violation) {
		for _, c := range h.clients {
			for _, x := range c.exchanges {
				if what := judge(h, x); what != "" {
					all = append(all, violation{exchange: x, what: what})
				}
			}
		}
		return all
	}
}

// streams makes a validator from a judge of a stream's difference from the truth.
func streams(judge func(*exchange, difference) string) func(*history) []violation {
	return each(func(h *history, x *exchange) string { return judge(x, h.compare(x)) })
}

// chains makes a validator from a judge of consecutive exchanges: a list or its
// equivalent, the watch after it, and the watches that resume it.
func chains(judge func([]*exchange) (*exchange, string)) func(*history) []violation {
	return func(h *history) (all []violation) {
		for _, c := range h.clients {
			for _, chain := range c.chains() {
				if x, what := judge(chain); what != "" {
					all = append(all, violation{exchange: x, what: what})
				}
			}
		}
		return all
	}
}

// chains splits the client's exchanges into lists or their equivalents, each with
// the watches that follow it.
func (c *client) chains() (all [][]*exchange) {
	for _, x := range c.exchanges {
		if x.Verb != resumed || len(all) == 0 {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], x)
	}
	return all
}

// ordered: the RVs of a stream strictly increase, and are above its start or its
// end bookmark (two bookmarks may have the same RV). The items of a list, and
// initial events, are sorted by key, and none is newer than the list.
//
// ADR 2 allows inferred deletions to share an RV if the upstream deleted the
// objects at one RV; nothing in this test does.
func ordered(_ *history, x *exchange) string {
	for i, e := range x.Items {
		if i > 0 && listOrder(x.Items[i-1].Key, e.Key) >= 0 {
			return fmt.Sprintf("item %s after %s", e, x.Items[i-1].Key)
		}
		if x.RV > 0 && e.RV > x.RV {
			return fmt.Sprintf("item %s in a list at %d", e, x.RV)
		}
		if e.Type != "ADDED" {
			return fmt.Sprintf("%s before the end bookmark", e)
		}
	}
	last, ok := x.from()
	if !ok {
		return ""
	}
	typ := "BOOKMARK"
	for i, e := range x.Events {
		// A bookmark may come at the RV of the event before it.
		if e.RV < last || e.RV == last && e.Type != "BOOKMARK" && (i > 0 || typ == "BOOKMARK") {
			return fmt.Sprintf("event %d, %s, after %s at %d", i, e, typ, last)
		}
		last, typ = e.RV, e.Type
	}
	return ""
}

// listOrder compares keys bytewise, in the order of lists.
func listOrder(a, b string) int { return cmp.Compare(a, b) }

// unique: no event comes twice, neither on one stream nor on one that resumes it.
func unique(chain []*exchange) (*exchange, string) {
	type id struct {
		key string
		rv  uint64
	}
	seen := map[id]bool{}
	for _, x := range chain {
		for _, e := range x.Events {
			if e.Type == "BOOKMARK" {
				continue
			}
			if seen[id{e.Key, e.RV}] {
				return x, fmt.Sprintf("%s came before", e)
			}
			seen[id{e.Key, e.RV}] = true
		}
	}
	return nil, ""
}

// atomic: a stream that has an event at an RV has all events at that RV.
func atomic(h *history, x *exchange) string {
	from, ok := x.from()
	if !ok {
		return ""
	}
	got := map[uint64]int{}
	for _, e := range x.Events {
		if e.Type != "BOOKMARK" {
			got[e.RV]++
		}
	}
	want := map[uint64]int{}
	for _, e := range h.truth(x).expected(x.Selector, from, x.place()) {
		want[e.RV]++
	}
	for rv, n := range got {
		if n < want[rv] {
			return fmt.Sprintf("%d of the %d events at %d", n, want[rv], rv)
		}
	}
	return ""
}

// reliable: between a stream's start and its last RV, of an event or a bookmark,
// no event is missing that its selector matches. (Over a gap: no event of the
// difference.)
func reliable(_ *exchange, d difference) string { return d.missing }

// resumable: a stream from r begins with the first event above r; nothing is
// missing between r and its first event.
func resumable(x *exchange, d difference) string {
	if x.Verb == resumed && d.missing != "" && (len(x.Events) == 0 || d.at < x.Events[0].RV) {
		return "from its start on: " + d.missing
	}
	return ""
}

// bookmarkable: after a bookmark at r nothing ≤ r comes. A bookmark is above the
// stream's start (below /at, that where live begins may be at it), comes only to clients
// that requested it, and is not above the API server's RV.
func bookmarkable(h *history, x *exchange) string {
	from, ok := x.from()
	if !ok {
		return ""
	}
	mark, t := uint64(0), h.truth(x)
	for i, e := range x.Events {
		if e.Type != "BOOKMARK" {
			if e.RV <= mark {
				return fmt.Sprintf("%s after a bookmark at %d", e, mark)
			}
			continue
		}
		switch {
		case !x.Bookmarks:
			return fmt.Sprintf("bookmark at %d, none was requested", e.RV)
		case t.head > 0 && e.RV > t.head:
			return fmt.Sprintf("bookmark at %d, the API server did not come beyond %d", e.RV, t.head)
		case e.RV < mark:
			return fmt.Sprintf("bookmark at %d after one at %d", e.RV, mark)
		case x.Verb == resumed && (e.RV < from || e.RV == from && !strings.Contains(e.Text, `"watchkeeper/live":"true"`)):
			return fmt.Sprintf("bookmark %d at %d, the start is %d", i, e.RV, from)
		}
		mark = e.RV
	}
	return ""
}

// truthful: each event happened, has the type of its transition for the selector,
// and has the bytes that the API server sends. (Or it belongs to the difference
// over a gap.)
func truthful(_ *exchange, d difference) string { return d.invented }

// consistent: a list, and the initial events up to their end bookmark, are
// exactly the state at its RV.
func consistent(h *history, x *exchange) string {
	if h.mixedPages(x) {
		return ""
	}
	return h.truth(x).consistent(x)
}

// consistent compares a list with the state at its RV.
func (t *truth) consistent(x *exchange) string {
	if !x.synced() {
		return ""
	}
	if x.RV < t.base {
		return fmt.Sprintf("a list at %d, from before the round at %d", x.RV, t.base)
	}
	want := t.expectedList(x.Selector, x.RV)
	for i := range max(len(want), len(x.Items)) {
		switch {
		case i == len(want):
			return fmt.Sprintf("list at %d: %s is too much", x.RV, x.Items[i])
		case i == len(x.Items):
			return fmt.Sprintf("list at %d: %s is missing", x.RV, want[i])
		case want[i] != x.Items[i]:
			return fmt.Sprintf("list at %d: item %d is\n%s %s\nwant\n%s %s", x.RV, i, x.Items[i], x.Items[i].Text, want[i], want[i].Text)
		}
	}
	return ""
}

// converging: in the end every client has received all events up to the last
// write, and holds the API server's state. (Over a gap: the state where the gap
// ends.)
func converging(h *history) (all []violation) {
	for _, c := range h.clients {
		chains := c.chains()
		if len(chains) == 0 {
			all = append(all, violation{what: c.name + " did nothing"})
			continue
		}
		chain := chains[len(chains)-1]
		last := chain[len(chain)-1]
		fail := func(format string, args ...any) {
			all = append(all, violation{exchange: last, what: fmt.Sprintf(format, args...)})
		}
		if h.crossed(chain) || c.partial {
			continue
		}
		if due := h.due(c, c.rv); !c.again && len(due) > 0 {
			fail("the client is at %d, and lacks %s (and %d more)", c.rv, due[0], len(due)-1)
			continue
		}
		if !chain[0].synced() {
			continue // it has no state, or starts over each time
		}
		held, place := holds(chain)
		at := place
		if !c.again {
			at = max(place, h.final[c.resource])
		}
		if g, in := around(h.gaps(c), at); in {
			if at = g.To; c.again {
				continue // it has a part of the difference, which is no state
			}
		}
		for _, e := range h.truths[c.resource].expectedList(c.sel, at) {
			if held[e.Key] != e.RV {
				fail("at %d it holds %s of %d, want %d", place, e.Key, held[e.Key], e.RV)
			}
			delete(held, e.Key)
		}
		for key, rv := range held {
			fail("at %d it holds %s of %d, which is gone", place, key, rv)
		}
	}
	return all
}

// holds returns the RVs of the objects that a client holds after a chain, by key,
// and the RV that it has reached.
func holds(chain []*exchange) (held map[string]uint64, place uint64) {
	held = map[string]uint64{}
	for _, x := range chain {
		for _, e := range x.Items {
			held[e.Key] = e.RV
		}
		for _, e := range x.Events {
			switch e.Type {
			case "DELETED":
				delete(held, e.Key)
			case "ADDED", "MODIFIED":
				held[e.Key] = e.RV
			}
		}
		place = max(place, x.place())
	}
	return held, place
}

// due returns the events up to the last write that a client at rv has yet to
// receive, except those that a gap may have hidden: an object created and deleted
// inside a gap leaves no event, nor does a difference in which nothing matches.
func (h *history) due(c *client, rv uint64) (events []event) {
	t, final := h.truths[c.resource], h.final[c.resource]
	for _, g := range h.gaps(c) {
		if rv < g.To && g.From < final {
			events = append(events, t.expected(c.sel, rv, g.From)...)
			rv = g.To
		}
	}
	return append(events, t.expected(c.sel, rv, final)...)
}

// gaps returns all gaps of a resource that a client may have crossed, in order. A gap in what a
// restore has rolled back is not one of the newest truth.
func (h *history) gaps(c *client) (all []gap) {
	if c.direct {
		return nil
	}
	return h.gapsOf(c.resource, func(g gap, ended time.Time) bool {
		newest := h.truths[c.resource]
		return g.To <= newest.backup || !ended.Before(newest.began)
	})
}

// gapsOf returns the gaps of a resource that ended as asked, in order, and those of which the
// end is unknown.
func (h *history) gapsOf(resource string, ask func(g gap, ended time.Time) bool) (all []gap) {
	for _, e := range h.epochs[resource] {
		for i, g := range e.Gaps {
			if e.Ended == nil || ask(g, e.Ended[i]) {
				all = append(all, g)
			}
		}
	}
	all = append(all, h.recorded[resource]...)
	slices.SortFunc(all, func(a, b gap) int { return cmp.Compare(a.From, b.From) })
	return all
}

// around returns the gap that an RV is in.
func around(gaps []gap, rv uint64) (gap, bool) {
	for _, g := range gaps {
		if g.From < rv && rv < g.To {
			return g, true
		}
	}
	return gap{}, false
}

// fresh: a list or watch with RV unset has every write that was acknowledged
// before the request. (Except while the API server itself answered with stale
// data.)
func fresh(h *history, x *exchange) string {
	rv := x.RV
	switch {
	case x.Code != 200 || !x.current():
		return ""
	case x.Verb == byNow:
		for _, e := range x.Events {
			if e.Type != "BOOKMARK" {
				rv = e.RV - 1
				break
			}
		}
	}
	if rv == 0 || h.isStale(x) {
		return ""
	}
	t := h.truth(x)
	for _, a := range h.acks {
		if a.Resource != x.Resource || !a.At.Before(x.Began) || !t.lasted(a.At) {
			continue
		}
		written := a.RV
		if a.Deleted != "" {
			written = t.deletion(a.Deleted)
		}
		if written > rv {
			return fmt.Sprintf("it is at %d, and %v before the request a write at %d was acknowledged", rv, x.Began.Sub(a.At), written)
		}
	}
	return ""
}

// deletion returns the RV at which the object with the UID was deleted.
func (t *truth) deletion(uid string) uint64 {
	for _, v := range t.versions {
		if v.Deleted && v.UID == uid {
			return v.RV
		}
	}
	return 0
}

// documented: a stream ends as the API documents it, and has complete frames
// only: it ends normally, with its connection, or with an ERROR 410, 429 or 5xx. A
// request is refused only with 429 or 5xx, and an expired page of a list with 410. (In shared
// mode, an API server that is not ready yet refuses all but system:masters.)
func documented(h *history, x *exchange) string {
	if x.Code == 410 && x.Verb == byPages || x.Code == 403 && h.isRefusing(x) {
		return ""
	}
	if x.Code != 0 && x.Code != 200 && x.Code != 429 && x.Code/100 != 5 {
		return fmt.Sprintf("answered with %d: %s", x.Code, x.End)
	}
	if x.Error != 0 && x.Error != 410 && x.Error/100 != 5 && x.Error != 429 {
		return x.End
	}
	for _, e := range append(x.Items, x.Events...) {
		if e.Type == "MALFORMED" {
			return fmt.Sprintf("a malformed frame: %.200q", e.Text)
		}
	}
	return ""
}

// isRefusing reports whether the API server may have refused a request of a gateway's client.
func (h *history) isRefusing(x *exchange) bool {
	return !x.Direct && slices.ContainsFunc(h.refusing, func(s timeSpan) bool {
		return !x.Ended.Before(s.from) && !x.Began.After(s.to)
	})
}

// steady: unless a fault made a gateway lose its history, no client gets 410. (A record has a
// gap where it could not be continued at once, as when the gateway could not reach the API
// server when it started.)
func steady(h *history, x *exchange) string {
	at := x.Start
	if x.Joined { // the last one of its watches
		at = x.place()
	}
	if h.whole && x.Error == 410 && !slices.ContainsFunc(h.recorded[x.Resource], func(g gap) bool { return g.From < at && at < g.To }) {
		return "the history was complete: " + x.End
	}
	return ""
}

// granted: in shared mode, no watch ends as if its right were gone, since the clients keep
// their rights.
func granted(h *history) (all []violation) {
	for _, line := range h.revoked {
		all = append(all, violation{what: line})
	}
	return all
}

// judge returns all that validators find.
func judge(h *history) (all []violation) {
	for _, v := range validators {
		for _, violation := range v.judge(h) {
			violation.guarantee = v.name
			all = append(all, violation)
		}
	}
	sortViolations(all)
	return all
}

// order of violations in a report.
func sortViolations(all []violation) {
	slices.SortStableFunc(all, func(a, b violation) int {
		began := func(v violation) time.Time {
			if v.exchange == nil {
				return time.Time{}
			}
			return v.exchange.Began
		}
		return began(a).Compare(began(b))
	})
}
