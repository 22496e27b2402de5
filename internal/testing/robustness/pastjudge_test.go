// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// known is the span that a gateway reports as recorded of one resource.
type known struct {
	From, To uint64 // RVs of the oldest and the newest state
	Since    time.Time
	Gaps     []pastGap
	Late     []pastGap // those whose events came at the end: they hide times, and no RVs
}

// A pastGap is a gap, and the times of its ends.
type pastGap struct {
	gap
	Since, Until time.Time
}

// within returns the gap that hides an RV.
func (k known) within(rv uint64) (pastGap, bool) {
	for _, g := range k.Gaps {
		if g.From < rv && rv < g.To {
			return g, true
		}
	}
	return pastGap{}, false
}

// late returns the late gap that hides a time.
func (k known) late(when time.Time) (pastGap, bool) {
	for _, g := range k.Late {
		if g.Since.Before(when) && when.Before(g.Until) {
			return g, true
		}
	}
	return pastGap{}, false
}

// A downtime is a span of time without a running gateway.
type downtime struct{ from, to time.Time }

// A pastRead is a read of the past, with the response.
type pastRead struct {
	*exchange
	// Asked is the requested RV; 0 if a time was requested.
	Asked uint64
	When  time.Time
	// At is set for a read below /at/, and not for one on the API's own paths,
	// where the gateway may pass through what it does not have.
	At bool
	// Name is set for a read of a single object.
	Name string
	// Before and After are the spans that the gateway reported before and
	// after the read: retention may move them meanwhile.
	Before, After known
	// Cells are those of a Table, and DirectCells those that the API server
	// returned when this was its newest state.
	Cells, DirectCells [][]any
}

func (r *pastRead) String() string {
	of := r.When.Format(time.RFC3339Nano)
	if r.Asked != 0 {
		of = fmt.Sprintf("RV %d", r.Asked)
	}
	return fmt.Sprintf("%s of %s (it has %d to %d, gaps %v, late %v)", r.Path, of, r.After.From, r.After.To, r.After.Gaps, r.After.Late)
}

// observed is how long a gateway on a loaded machine may take to observe a
// change; skew is how much later than the gateway the truth may observe it.
const (
	observed = 5 * time.Second
	skew     = time.Second
)

// judgePast returns what is wrong with a read of the past, or "".
func (t *truth) judgePast(r *pastRead, downtimes []downtime) string {
	if r.Asked == 0 {
		return t.judgeTime(r, downtimes)
	}
	hidden, inGap := r.Before.within(r.Asked)
	_, stillIn := r.After.within(r.Asked)
	switch {
	case inGap && stillIn:
		if r.Code == http.StatusGone {
			return r.refusalSays(hidden.From, hidden.To)
		}
		if r.At || r.Code != http.StatusOK {
			return fmt.Sprintf("in the gap %v: answered with %d, %s", hidden, r.Code, r.End)
		}
	case r.Asked < r.Before.From:
		if r.Code == http.StatusGone {
			return r.refusalSays()
		}
		if r.At || r.Code != http.StatusOK {
			return fmt.Sprintf("before what is retained: answered with %d, %s", r.Code, r.End)
		}
	case r.Asked < r.After.From && r.Code == http.StatusGone:
		return r.refusalSays() // removed after the request was sent
	case r.Name != "" && r.Code == http.StatusNotFound:
		if want := t.named(r); len(want) > 0 {
			return fmt.Sprintf("%s is not found", want[0])
		}
		return ""
	case r.Code != http.StatusOK:
		return fmt.Sprintf("answered with %d: %s", r.Code, r.End)
	}
	// A response is exact, even if it was passed through.
	if r.RV != r.Asked {
		return fmt.Sprintf("a state at %d", r.RV)
	}
	return r.compare(t.named(r))
}

// named returns the expected items of a read.
func (t *truth) named(r *pastRead) []event {
	want := t.expectedList(r.Selector, r.RV)
	if r.Name != "" {
		want = t.expectedList(r.Selector, r.Asked)
		want = slices.DeleteFunc(want, func(e event) bool { return e.Key != r.Name })
	}
	return want
}

// refusalSays checks that a refusal names the ends of a gap or, without one, the retained
// span.
func (r *pastRead) refusalSays(ends ...uint64) string {
	// A request that is passed through is refused by the API server, which does
	// not name a span.
	if !r.At && strings.Contains(r.End, "too old") {
		return ""
	}
	var numbers []uint64
	for _, text := range number.FindAllString(r.End, -1) {
		n, _ := strconv.ParseUint(text, 10, 64)
		numbers = append(numbers, n)
	}
	for _, end := range ends {
		if !slices.Contains(numbers, end) {
			return fmt.Sprintf("the refusal does not say %d: %s", end, r.End)
		}
	}
	if len(ends) > 0 {
		return ""
	}
	// The retained span may have moved meanwhile.
	from := func(n uint64) bool { return r.Before.From <= n && n <= r.After.From }
	to := func(n uint64) bool { return r.Before.To <= n && n <= r.After.To }
	if !slices.ContainsFunc(numbers, from) || !slices.ContainsFunc(numbers, to) {
		return fmt.Sprintf("the refusal does not say what is retained, %d to %d: %s", r.After.From, r.After.To, r.End)
	}
	return ""
}

var number = regexp.MustCompile(`\b\d+\b`)

// compare compares a list, in its order, and the cells of a Table.
func (r *pastRead) compare(want []event) string {
	for i := range max(len(want), len(r.Items)) {
		switch {
		case i == len(want):
			return fmt.Sprintf("%s is too much", r.Items[i])
		case i == len(r.Items):
			return fmt.Sprintf("%s is missing", want[i])
		case want[i] != r.Items[i]:
			return fmt.Sprintf("item %d is\n%s %s\nwant\n%s %s", i, r.Items[i], r.Items[i].Text, want[i], want[i].Text)
		}
	}
	if r.Cells != nil && len(r.Cells) != len(want) {
		return fmt.Sprintf("%d rows of %d objects", len(r.Cells), len(want))
	}
	for i, cells := range r.Cells {
		_, name, _ := strings.Cut(want[i].Key, "/")
		if len(cells) == 0 || cells[0] != name {
			return fmt.Sprintf("the row of %s is %v", name, cells)
		}
	}
	if r.DirectCells != nil && fmt.Sprint(r.Cells) != fmt.Sprint(r.DirectCells) {
		return fmt.Sprintf("the rows are\n%v\nthe API server's were\n%v", r.Cells, r.DirectCells)
	}
	return ""
}

// judgeTime judges a read as of a time: the response is the state at its RV, and
// that state was current at the time, within the precision of the observation.
func (t *truth) judgeTime(r *pastRead, downtimes []downtime) string {
	for _, g := range r.After.Gaps {
		if !g.Since.Before(r.When) || !r.When.Before(g.Until) {
			continue
		}
		if r.Code != http.StatusGone {
			return fmt.Sprintf("in the gap of %v to %v: answered with %d, a state at %d", g.Since, g.Until, r.Code, r.RV)
		}
		return r.refusalSays(g.From, g.To)
	}
	_, before := r.Before.late(r.When)
	switch g, late := r.After.late(r.When); {
	case late && r.Code == http.StatusGone:
		for _, end := range []time.Time{g.Since, g.Until} {
			if !strings.Contains(r.End, stamp(end)) {
				return fmt.Sprintf("the refusal does not say %s: %s", stamp(end), r.End)
			}
		}
		return ""
	case late && before:
		return fmt.Sprintf("in the late gap of %v to %v: answered with %d, a state at %d", g.Since, g.Until, r.Code, r.RV)
	}
	if r.Code == http.StatusGone && r.When.Before(r.After.Since) {
		return r.refusalSays()
	}
	if r.Code != http.StatusOK {
		return fmt.Sprintf("answered with %d: %s", r.Code, r.End)
	}
	if r.When.Before(r.Before.Since) {
		return fmt.Sprintf("a state at %d, before what is retained since %v", r.RV, r.Before.Since)
	}
	if g, in := r.After.within(r.RV); in {
		return fmt.Sprintf("a state at %d, in the gap %v", r.RV, g)
	}
	// A gateway that was down has not observed any change since.
	known := r.When.Add(-observed)
	for _, a := range downtimes {
		if a.from.Before(r.When) && r.When.Before(a.to.Add(observed)) {
			known = a.from.Add(-observed)
		}
	}
	for _, v := range t.versions {
		if v.RV > r.RV && v.seen.Before(known) {
			return fmt.Sprintf("a state at %d, and %s changed at %d, %v before", r.RV, v.Key, v.RV, r.When.Sub(v.seen))
		}
		if v.RV <= r.RV && v.seen.After(r.When.Add(skew)) {
			return fmt.Sprintf("a state at %d, and %s changed at %d, %v later", r.RV, v.Key, v.RV, v.seen.Sub(r.When))
		}
	}
	return r.compare(t.named(r))
}

// expiredInGap reports whether the RV of a client expired rightly: the client had
// received more than was on disk when the gateway was killed, and its RV is now
// inside a gap. If so, it removes that exchange; the others are judged as usual.
// Below /at/ the request is refused; on the ordinary path the watch ends with an
// ERROR.
func (c *client) expiredInGap(gaps []pastGap) bool {
	last := c.exchanges[len(c.exchanges)-1]
	refused := last.Code == http.StatusGone && strings.Contains(c.base, "/at/")
	moved := slices.ContainsFunc(last.Events, func(e event) bool { return e.RV > last.Start }) // not by a bookmark at its start
	if last.Error != http.StatusGone && !refused || moved {
		return false
	}
	for _, g := range gaps {
		if g.From < last.Start && last.Start < g.To {
			c.exchanges, c.again = c.exchanges[:len(c.exchanges)-1], true
			return true
		}
	}
	return false
}

// pastValidators are those that apply to watches of the past.
var pastValidators = []string{"ordered", "unique", "atomic", "reliable", "resumable", "bookmarkable", "truthful", "converging", "documented", "steady"}

// judgePastWatches returns what is wrong with watches.
func judgePastWatches(h *history) (all []violation) {
	for _, v := range validators {
		if slices.Contains(pastValidators, v.name) {
			for _, violation := range v.judge(h) {
				violation.guarantee = v.name
				all = append(all, violation)
			}
		}
	}
	sortViolations(all)
	return all
}
