// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
)

// A clockStory is what is true about a gateway whose clock was set, and what it answered.
// All times in it are true ones, except clockRead.When.
type clockStory struct {
	truth     *truth
	settings  []clocktest.Setting
	reads     []*clockRead
	downtimes []downtime // of the gateway
	prompt    bool       // without faults, apart from these:
	outages   []downtime // of the API server, or of its connections
	gaps      []gap      // that the gateway has recorded
	late      []pastGap  // the late ones
	epochs    bool       // the record has several
	healed    time.Time  // from then on everything has to be answered
}

// A clockSummary counts judged answers.
type clockSummary struct{ states, refused, ambiguous, lenient, epochs int }

// judge returns what is wrong. The state at a time that the clock showed once is that which
// the gateway had observed when it did: at least what it answered as the present state
// before, at most what had been written. A time that the clock showed in two eras is
// refused with 410, and so is one in a late gap.
func (s *clockStory) judge(sum *clockSummary) (all []string) {
	if s.epochs {
		sum.epochs++
	}
	for _, r := range s.reads {
		if what := s.judgeRead(r, sum); what != "" {
			all = append(all, fmt.Sprintf("%v\n\t%s", r, what))
		}
	}
	return append(all, s.judgeLate()...)
}

// judgeLate judges the late gaps: without faults and steps of the clock, there is one where
// no gateway ran, or the API server had an outage.
func (s *clockStory) judgeLate() (all []string) {
	if !s.prompt || len(s.settings) > 1 {
		return nil
	}
	for _, g := range s.late {
		if !slices.ContainsFunc(slices.Concat(s.downtimes, s.outages), func(d downtime) bool {
			since, until := s.reading(d.from), s.reading(d.to)
			return since.Before(g.Until.Add(time.Millisecond)) && g.Since.Before(until.Add(lateBy))
		}) {
			all = append(all, fmt.Sprintf("nothing explains the late gap %v", g))
		}
	}
	return all
}

// lateBy is how long after a downtime a late gap may begin: one that is in parts.
const lateBy = 10 * time.Second

// inLate reports whether a time is in a late gap, as the gateway's clock showed it.
func (s *clockStory) inLate(when time.Time) bool {
	return slices.ContainsFunc(s.late, func(g pastGap) bool { return g.Since.Before(when) && when.Before(g.Until) })
}

func (s *clockStory) judgeRead(r *clockRead, sum *clockSummary) string {
	if r.Code == http.StatusOK {
		sum.states++
		if what := (&pastRead{exchange: r.exchange}).compare(s.truth.expectedList(r.Selector, r.RV)); what != "" {
			return what
		}
		if g, in := s.within(r.RV); in {
			return fmt.Sprintf("inside the gap %v", g)
		}
	} else {
		sum.refused++
	}
	first := slices.IndexFunc(s.reads, s.isNow)
	switch {
	case first < 0 || r.Began.Before(s.reads[first].Began): // nothing may be recorded yet
		return ""
	case r.Code == http.StatusServiceUnavailable && r.Ended.Before(s.healed):
		return "" // the gateway cannot know what is newest
	case s.setDuring(r), s.epochs:
		return ""
	case r.Asked != 0:
		return s.judgeRV(r, s.reads[first])
	}
	eras := s.eras(r)
	if r.Ago {
		return s.judgeAge(r, eras)
	}
	return s.judgeTime(r, eras, sum)
}

// isNow reports whether a read shows the state of the present, as of the moment at which it
// began. One that waited while the clock was set may show a later one.
func (s *clockStory) isNow(r *clockRead) bool {
	return r.Ago && r.Age == 0 && r.Code == http.StatusOK && !s.setDuring(r)
}

// setDuring reports whether the clock was set while a request waited.
func (s *clockStory) setDuring(r *clockRead) bool {
	return slices.ContainsFunc(s.settings, func(c clocktest.Setting) bool { return !c.At.Before(r.Began) && !c.At.After(r.Ended) })
}

func (s *clockStory) within(rv uint64) (gap, bool) {
	for _, g := range s.gaps {
		if g.From < rv && rv < g.To {
			return g, true
		}
	}
	return gap{}, false
}

// judgeRV judges a read at an RV. Steps of the clock do not matter to it.
func (s *clockStory) judgeRV(r, first *clockRead) string {
	newest := s.seen(r.Began, false)
	_, in := s.within(r.Asked)
	switch {
	case r.Code == http.StatusOK && r.RV != r.Asked:
		return "a state at another RV"
	case r.Code == http.StatusOK && r.Asked < s.truth.base, in && r.Code == http.StatusOK:
		return "nothing is known of it"
	case r.Code != http.StatusOK && !in && r.Asked >= first.RV && r.Asked <= newest:
		return fmt.Sprintf("refused, but the record has %d to %d", first.RV, newest)
	}
	return ""
}

// judgeAge judges a read by an age: a time by the present clock.
func (s *clockStory) judgeAge(r *clockRead, eras []clockEra) string {
	all := eras
	eras = slices.DeleteFunc(slices.Clone(present(eras)), func(e clockEra) bool { return !e.maybe.has(r.When) })
	switch {
	case r.Code == http.StatusOK && len(eras) == 0:
		return fmt.Sprintf("a state, but the age reaches back beyond a step of the clock: %v", all)
	case r.Code == http.StatusOK:
		return s.judgeState(r, eras)
	case r.Code != http.StatusGone:
		return "neither a state nor 410"
	case len(eras) > 0 && eras[len(eras)-1].last && eras[len(eras)-1].sure.has(r.When) && !s.hidden(r, eras):
		return "refused, but the age does not reach back beyond a step of the clock"
	}
	return ""
}

// judgeTime judges a read by a time.
func (s *clockStory) judgeTime(r *clockRead, eras []clockEra, sum *clockSummary) string {
	var sure, maybe []clockEra
	for _, e := range eras {
		if e.sure.has(r.When) {
			sure = append(sure, e)
		}
		if e.maybe.has(r.When) {
			maybe = append(maybe, e)
		}
	}
	future := r.When.After(s.reading(r.Began).Truncate(time.Millisecond))
	hidden := s.hidden(r, maybe)
	switch {
	case len(sure) > 1:
		sum.ambiguous++
		if r.Code != http.StatusGone {
			return fmt.Sprintf("not refused, but the clock showed the time more than once: %v", sure)
		}
		if !hidden && !strings.Contains(r.End, "the clock was set back from") {
			return "refused without the step of the clock"
		}
	case len(maybe) == 0:
		if r.Code != http.StatusGone {
			return "the clock has not shown the time"
		}
	case future && r.Code == http.StatusOK && !r.When.After(s.reading(r.Ended)):
		sum.lenient++ // it was no longer when the request had waited
	case future:
		if r.Code != http.StatusBadRequest && (r.Code != http.StatusGone || len(maybe) == 1 && !hidden) {
			return "the time is in the future"
		}
	case r.Code == http.StatusOK && len(s.settings) == 1 && !r.Began.Before(s.healed) && s.inLate(r.When):
		return "a state in a late gap"
	case r.Code == http.StatusOK:
		return s.judgeState(r, maybe)
	case r.Code != http.StatusGone:
		return "neither a state nor 410"
	case len(sure) == 1 && len(maybe) == 1 && !hidden:
		return fmt.Sprintf("refused, but the clock showed the time once: %v", maybe)
	default:
		sum.lenient++
	}
	return ""
}

// judgeState judges the state at a time of one of the eras.
func (s *clockStory) judgeState(r *clockRead, eras []clockEra) string {
	var wrong []string
	for _, e := range eras {
		least, most := s.states(e, r.When)
		n := s.index(r.RV)
		if least <= n && n <= most {
			return ""
		}
		wrong = append(wrong, fmt.Sprintf("a state with %d versions, not %d to %d: %v", n, least, most, e))
	}
	return strings.Join(wrong, "; ")
}

// index returns the number of versions up to an RV.
func (s *clockStory) index(rv uint64) int {
	return sort.Search(len(s.truth.versions), func(i int) bool { return s.truth.versions[i].RV > rv })
}

// seen returns the newest RV that the gateway has answered before a true time. With
// until, it is at that time, too.
func (s *clockStory) seen(t time.Time, until bool) (rv uint64) {
	for _, r := range s.reads {
		if s.isNow(r) && (r.Ended.Before(t) || until && r.Ended.Equal(t)) {
			rv = max(rv, r.RV)
		}
	}
	return rv
}

// states returns the least and the largest number of versions that the state at a time of
// an era can have.
func (s *clockStory) states(e clockEra, when time.Time) (least, most int) {
	end := e.shows(when) // exclusive
	most = sort.Search(len(s.truth.versions), func(i int) bool { return !s.truth.versions[i].seen.Before(end) })
	for _, r := range s.reads {
		switch {
		case !s.isNow(r):
		case r.Began.Before(end):
			least = max(least, s.index(r.RV))
		default:
			most = min(most, s.index(r.RV))
		}
	}
	if s.promptAt(end) {
		least = most
	}
	return least, most
}

// promptAt reports whether the gateway observed changes when they were written, before a true
// time: it had caught up after the last disturbance, with something written after it.
func (s *clockStory) promptAt(t time.Time) bool {
	last := time.Time{}
	for _, d := range slices.Concat(s.downtimes, s.outages) {
		switch {
		case !d.from.Before(t):
		case !d.to.Before(t):
			return false
		case d.to.After(last):
			last = d.to
		}
	}
	return s.prompt && slices.ContainsFunc(s.reads, func(r *clockRead) bool {
		written := sort.Search(len(s.truth.versions), func(i int) bool { return s.truth.versions[i].seen.After(r.Began) })
		return s.isNow(r) && r.Began.Before(t) && s.index(r.RV) == written && s.written(r.RV).After(last)
	})
}

// hidden reports whether a gap may hide the state at a time of one of the eras.
func (s *clockStory) hidden(r *clockRead, eras []clockEra) bool {
	if s.inLate(r.When) {
		return true
	}
	for _, g := range s.gaps {
		from, to := s.written(g.From), time.Time{}
		for _, r := range s.reads {
			if s.isNow(r) && r.RV >= g.To && (to.IsZero() || r.Ended.Before(to)) {
				to = r.Ended
			}
		}
		for _, e := range eras {
			if at := e.shows(r.When); at.After(from) && (to.IsZero() || !at.After(to.Add(2*time.Millisecond))) {
				return true
			}
		}
	}
	return false
}

// written returns when the last version up to an RV was written, or when the story begins.
func (s *clockStory) written(rv uint64) time.Time {
	if n := s.index(rv); n > 0 {
		return s.truth.versions[n-1].seen
	}
	return s.settings[0].At
}

// reading returns what the clock showed at a true time.
func (s *clockStory) reading(t time.Time) time.Time {
	ahead := time.Duration(0)
	for _, c := range s.settings {
		if !c.At.After(t) {
			ahead = c.Ahead
		}
	}
	return t.Add(ahead)
}
