// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"fmt"
	"time"
)

// A ClockStep is where the clock of the recorder was set back. Times of a stream
// never decrease, except at a step. So the steps divide a stream into eras, and a
// time that only one era has is one state.
//
//	era 0  ──────────────────────────── From │
//	era 1                To │ ────────────────────────────────▶
//	          one state     │ more than one  │    one state
type ClockStep struct {
	// RV was the head.
	RV uint64
	// From is the time of the last observation before the step, and To what the new
	// clock would have shown then. If the process was restarted in between, To is
	// the time of the next observation.
	From, To time.Time
}

// maxClockError is by how much times may go back without a step: the time of the
// observation before is recorded instead.
const maxClockError = 100 * time.Millisecond

// maxEra is the largest number in a key of tableTimes. Later steps are not recorded.
const maxEra = 1<<16 - 1

// stepBack returns the step of the clock between two observations, in this order, and
// what the new clock would have shown at the first. The monotonic clock tells a step from
// the time that has passed. stepped is false if there was none, or if b was made before a
// but came later.
func stepBack(a, b time.Time) (to time.Time, stepped bool) {
	to = b.Round(0)
	if isMonotonic(a) && isMonotonic(b) {
		elapsed := b.Sub(a)
		if elapsed <= 0 {
			return to, false
		}
		to = to.Add(-elapsed)
	}
	return to.Truncate(time.Millisecond), !a.IsZero() && a.Round(0).Sub(to) > maxClockError
}

// ClockSet reports whether the clock was set between two of its readings.
func ClockSet(a, b time.Time) bool {
	by := b.Round(0).Sub(a.Round(0)) - b.Sub(a)
	return by.Abs() > maxClockError
}

// isMonotonic reports whether a time has a reading of the monotonic clock.
func isMonotonic(t time.Time) bool { return t != t.Round(0) }

// observe returns the time to record for an observation at t after everything up
// to rv. It records a step of the clock.
func (w *writeBatch) observe(t time.Time, rv uint64) (time.Time, error) {
	last := w.stamp
	to, stepped := stepBack(last, t)
	late := isMonotonic(t) && isMonotonic(last) && t.Before(last)
	switch {
	case stepped && w.era < maxEra:
		step := ClockStep{RV: rv, From: last.Truncate(time.Millisecond), To: to}
		w.era++
		w.steps = append(w.steps, step)
		if err := w.batch.Set(numberKey(tableClock, w.st.id, w.era), appendClockStep(nil, step), nil); err != nil {
			return t, err
		}
		w.stamp = t
	case last.IsZero(), !late && t.Round(0).After(last.Round(0)):
		w.stamp = t
	}
	return w.stamp.Truncate(time.Millisecond), nil
}

// checkClock records a step of the clock since the last observation, if there was
// one. Otherwise the next observation would.
func (st *Stream) checkClock() error {
	now := st.s.now()
	st.mu.Lock()
	_, stepped := st.pendingStepLocked(now)
	st.mu.Unlock()
	if !stepped {
		return nil
	}
	w, err := st.newWriteBatch()
	if err != nil {
		return err
	}
	defer w.close()
	head := w.span.To.RV
	if _, err := w.observe(now, head); err != nil || len(w.steps) == 0 {
		return err
	}
	// Nothing was observed since the step.
	if err := w.setHead(Moment{head, w.steps[0].To}); err != nil {
		return err
	}
	return w.commit()
}

// pendingStepLocked returns a step that is not yet recorded. What an imported
// recording contains was observed with another clock.
func (st *Stream) pendingStepLocked(now time.Time) (s ClockStep, stepped bool) {
	if st.span.To.RV == 0 || st.s.opts.Temporary || st.s.opts.ReadOnly {
		return s, false
	}
	to, stepped := stepBack(st.stamp, now)
	return ClockStep{st.span.To.RV, st.span.To.At, to}, stepped
}

// Behind returns by how much a clock that shows now is behind the last recorded time without
// a step: what is observed now is recorded with that time.
func (st *Stream) Behind(now time.Time) time.Duration {
	by := st.Head().At.Sub(now)
	if by < 0 || by > maxClockError {
		return 0
	}
	return by
}

// An era is the part of a stream between two steps of the clock. Times in it do
// not decrease.
type era struct {
	number   uint64
	from, to Moment // to.RV is the head for the last era
	last     bool   // its end is open
	steps    bool   // it begins with a step, else where the retained span begins
}

// has reports whether the clock showed t in the era.
func (e era) has(t time.Time) bool {
	return !t.Before(e.from.At) && (e.last || !t.After(e.to.At))
}

// erasLocked returns the eras of the retained span, oldest first, between steps:
// st.steps, and perhaps one that is not recorded yet.
func (st *Stream) erasLocked(steps []ClockStep) []era {
	first := era{number: st.era - uint64(len(st.steps)), from: st.span.From}
	all := make([]era, 0, len(steps)+1)
	for _, s := range steps {
		first.to = Moment{s.RV, s.From}
		all = append(all, first)
		first = era{number: first.number + 1, from: Moment{s.RV, s.To}, steps: true}
	}
	first.to, first.last = st.span.To, true
	return append(all, first)
}

// eraAtLocked returns the era of a time. If ago is set, the time was computed from the
// present one, so it must be in the last era.
func (st *Stream) eraAtLocked(t time.Time, ago bool) (era, error) {
	steps := st.steps
	if s, ok := st.pendingStepLocked(st.s.now()); ok {
		steps = append(steps[:len(steps):len(steps)], s)
	}
	all := st.erasLocked(steps)
	last := all[len(all)-1]
	if ago && t.Before(last.from.At) && last.steps {
		return era{}, st.clockError(t, all[len(all)-2].to.At, last)
	}
	if ago {
		all = all[len(all)-1:]
	}
	found := -1
	for i := range all {
		switch {
		case !all[i].has(t):
		case found >= 0:
			// The newest step that the time is affected by explains it.
			for i = len(all) - 1; !all[i].has(t) || !all[i].steps; i-- {
			}
			return era{}, st.clockError(t, all[i-1].to.At, all[i])
		default:
			found = i
		}
	}
	if found < 0 {
		return era{}, st.rangeError(ErrBefore, formatTime(t))
	}
	return all[found], nil
}

func (st *Stream) clockError(t, before time.Time, e era) error {
	return fmt.Errorf("%w: %s; at the resourceVersion %d of %s, the clock was set back from %s to %s: name a resourceVersion (rv:%d), or a time before or after both",
		ErrClock, formatTime(t), e.from.RV, st.resource.GroupResource(), formatTime(before), formatTime(e.from.At), e.from.RV)
}

// Shows reports whether the clock showed a time while the retained part of the
// stream was recorded.
func (st *Stream) Shows(t time.Time) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.span.From.RV == 0 {
		return false
	}
	for _, e := range st.erasLocked(st.steps) {
		if e.last = false; e.has(t) {
			return true
		}
	}
	return false
}

// ClockSteps returns the recorded steps of the clock in the retained span, oldest
// first.
func (st *Stream) ClockSteps() []ClockStep {
	st.mu.Lock()
	defer st.mu.Unlock()
	return append([]ClockStep{}, st.steps...)
}

// TimeSpans returns what the clock showed in the retained span: more than one
// span, which overlap, if it was set back.
func (st *Stream) TimeSpans() (all []Span) {
	for _, e := range st.eras() {
		if e.to.RV != 0 {
			all = append(all, Span{e.from, e.to})
		}
	}
	return all
}

// eras returns the recorded eras.
func (st *Stream) eras() []era {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.erasLocked(st.steps)
}

// retainedAt returns the last head, and its era, that was observed by t at the
// latest. Times after the present one are of a clock that was ahead: what they belong to
// was observed before the next era that began in the past.
func (st *Stream) retainedAt(t time.Time) (at Moment, e era, err error) {
	all, now := st.eras(), st.s.now()
	for i := range all {
		if e = all[i]; e.last {
			break
		}
		end := e.to.At
		for _, later := range all[i+1:] {
			if end.After(now) {
				end = later.from.At
			}
		}
		if !end.Before(t) {
			break
		}
	}
	at, err = st.headAt(e, t)
	return at, e, err
}

// appendClockStep appends the value of a step, 24 bytes. The era is in the key.
func appendClockStep(b []byte, s ClockStep) []byte {
	return binary.BigEndian.AppendUint64(appendMoment(b, Moment{s.RV, s.From}), uint64(s.To.UnixMilli()))
}

func parseClockStep(b []byte) (ClockStep, error) {
	if len(b) != 24 {
		return ClockStep{}, corrupt("%q is not a step of the clock", b)
	}
	return ClockStep{RV: binary.BigEndian.Uint64(b), From: parseTime(b[8:]), To: parseTime(b[16:])}, nil
}

// timesKey returns a key of tableTimes. Times of one era follow those of the era
// before: they have 48 bits.
func timesKey(s streamID, era uint64, t time.Time) []byte {
	ms := min(max(t.UnixMilli(), 0), 1<<48-1)
	return numberKey(tableTimes, s, era<<48|uint64(ms))
}
