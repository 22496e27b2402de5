// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"fmt"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
)

// A clockEra is a span without a step back of the clock, which may be set forward in it.
//
//	true time    before     began                         ended
//	clock        │          │ maybe.from ≤ first reading  │ last reading ≤ maybe.to
//	gateway      observed   the clock is set back         the clock is set back again
//
// The gateway knows the moments of its observations only: an era may begin for it when the
// new clock would have shown its last observation before, and ends with its last
// observation. If it was restarted in between, the era begins with the next one.
type clockEra struct {
	settings []clocktest.Setting // the first one begins the era
	ended    time.Time           // true time; of the last era, that of the question
	// sure and maybe are the times that the gateway must, and may, count to the era.
	sure, maybe clockSpan
	// known is set if the gateway must know that the era has begun.
	known bool
	last  bool // it is the present one
}

// A clockSpan is a span of readings, with both ends. A zero to of a span that is not empty
// is no bound.
type clockSpan struct{ from, to time.Time }

func (s clockSpan) has(t time.Time) bool {
	return !s.from.IsZero() && !t.Before(s.from) && (s.to.IsZero() || !t.After(s.to))
}

func (e clockEra) String() string {
	var b strings.Builder
	for _, c := range e.settings {
		fmt.Fprintf(&b, "%s ahead from %s; ", c.Ahead, stamp(c.At))
	}
	return fmt.Sprintf("{%sended %s, known %v, surely %s to %s, perhaps %s to %s}", b.String(), stamp(e.ended), e.known, stamp(e.sure.from), stamp(e.sure.to), stamp(e.maybe.from), stamp(e.maybe.to))
}

// shows returns the true time until which, exclusive, an observation in the era belongs to
// a reading, in ms, or to an earlier one.
func (e clockEra) shows(when time.Time) time.Time {
	end := when.Add(time.Millisecond)
	at := e.settings[0].At
	for i, c := range e.settings {
		if i > 0 && end.Before(c.At.Add(c.Ahead)) {
			break // not shown yet, or skipped
		}
		at = end.Add(-c.Ahead)
		if i+1 < len(e.settings) && at.After(e.settings[i+1].At) {
			at = e.settings[i+1].At
		}
	}
	if at.Before(e.settings[0].At) { // counted to the era, but before the clock was set
		return e.settings[0].At
	}
	if at.After(e.ended) {
		return e.ended
	}
	return at
}

// eras returns the eras until a request.
func (s *clockStory) eras(r *clockRead) (all []clockEra) {
	for i, c := range s.settings {
		if c.At.After(r.Began) {
			break
		}
		if i == 0 || c.Ahead < s.settings[i-1].Ahead {
			if n := len(all); n > 0 {
				all[n-1].ended = c.At
			}
			all = append(all, clockEra{})
		}
		e := &all[len(all)-1]
		e.settings = append(e.settings, c)
	}
	end := r.Began.Add(1) // what is observed at that moment is in it
	if ms := r.Began.Truncate(time.Millisecond).Add(time.Millisecond); !r.Ended.Before(ms) {
		end = ms // and in that millisecond, if the request had to wait
	}
	all[len(all)-1].ended = end
	for i := range all {
		s.bound(&all[i], i == 0, i == len(all)-1, r)
		if from := all[i].sure.from; i > 0 && !from.IsZero() && all[i-1].sure.to.Add(-maxClockError).After(from) {
			all[i].known = true
		}
	}
	return all
}

// present returns the eras to which an age can belong: the last one, and those before it
// that the gateway may not distinguish from it.
func present(eras []clockEra) []clockEra {
	i := len(eras) - 1
	for i > 0 && !eras[i].known {
		i--
	}
	return eras[i:]
}

// maxClockError is up to how much a clock may go back without a step.
const maxClockError = 100 * time.Millisecond

// bound finds the times that count to an era.
func (s *clockStory) bound(e *clockEra, first, last bool, asked *clockRead) {
	e.last = last
	began := e.settings[0].At
	before := s.settings[0].At // not after the last observation before the era
	var proof, start, newest *clockRead
	for _, r := range s.reads {
		if !s.isNow(r) || r.Began.After(asked.Began) {
			continue
		}
		if start == nil {
			start = r
		}
		switch written := s.written(r.RV); {
		case r.Began.Before(began):
			before = written
		case r.Began.Before(e.ended) && !written.Before(began):
			if newest = r; proof == nil {
				proof = r // something was observed in the era
			}
		}
	}
	from := s.reading(began)
	e.maybe.from = from.Add(before.Sub(began)).Truncate(time.Millisecond)
	if !last {
		e.maybe.to = s.settings[s.setting(e.ended)-1].Shows(e.ended)
	}
	switch {
	case first && start != nil && start.Began.Before(e.ended):
		e.sure.from = s.reading(start.Began)
	case first:
		return
	case proof == nil && last:
		e.sure.from, e.known = from, true
		if !s.undisturbed(began, before, asked.Began) {
			// The era begins with the next observation, for which the request may have waited.
			e.sure.from, e.known = s.reading(asked.Ended), false
		}
	case proof == nil:
		return
	case s.undisturbed(began, before, proof.Began):
		e.sure.from, e.known = from, true
	default:
		e.sure.from = s.reading(proof.Began).Add(maxClockError)
	}
	if start == nil || !start.Began.Before(e.ended) {
		e.sure = clockSpan{} // nothing was recorded yet
		return
	}
	if at := s.reading(start.Began); !start.Began.Before(began) && at.After(e.sure.from) {
		e.sure.from = at
	}
	switch {
	case last:
	case newest == nil:
		e.sure = clockSpan{}
	default:
		e.sure.to = s.reading(s.written(newest.RV)).Truncate(time.Millisecond)
		if e.sure.to.Before(e.sure.from) {
			e.sure = clockSpan{}
		}
	}
}

// setting returns the index of the setting that begins at a true time.
func (s *clockStory) setting(at time.Time) int {
	for i, c := range s.settings {
		if c.At.Equal(at) {
			return i
		}
	}
	return len(s.settings)
}

// undisturbed reports whether the gateway could measure the step at a moment between two
// observations: it ran on, and the clock was set only once.
func (s *clockStory) undisturbed(step, before, after time.Time) bool {
	for _, c := range s.settings[1:] {
		if !c.At.Equal(step) && !c.At.Before(before) && !c.At.After(after) {
			return false
		}
	}
	for _, d := range s.downtimes {
		if !d.to.Before(before) && !d.from.After(after) {
			return false
		}
	}
	return true
}

// String lists how the clock was set, and the times without a gateway.
func (s *clockStory) String() string {
	var b strings.Builder
	for _, c := range s.settings {
		fmt.Fprintf(&b, "\n\t%s: the clock is %v ahead", stamp(c.At), c.Ahead)
	}
	for _, d := range s.downtimes {
		fmt.Fprintf(&b, "\n\t%s to %s: no gateway", stamp(d.from), stamp(d.to))
	}
	fmt.Fprintf(&b, "\n\tgaps %v, late %v, healed %s", s.gaps, s.late, stamp(s.healed))
	return b.String()
}
