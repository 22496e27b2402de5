// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// A silence is a time in which nothing of a resource was observed, because the program did
// not run, the watch had ended, or the API server did not answer. The events of that time
// come when a watch from the head is opened, or the open one goes on: their times are not
// known, and the record gets a late gap. If the resource is listed instead, the record gets
// a gap of the other kind.
//
// The zero value is no silence. Any goroutine may call the methods: they do not block.
type silence struct {
	least time.Duration // how long an interruption of a watch must last to be recorded

	mu sync.Mutex // guards what follows
	silent
}

// silent is the state of a silence.
type silent struct {
	since time.Time // nothing was observed since; zero if there is no silence
	found time.Time // what was observed later is of the silence
	start bool      // it began before the writer; then it is recorded, however short
	// unwatched is set until a watch is opened, outage until the API server answers again.
	unwatched, outage bool
	// watched is when that was, zero before; settled is when what is sent at once is complete,
	// and reach the RV that the cache had then: the record may be behind it.
	watched, settled time.Time
	reach            uint64
	// withdraw is set if it began with a watch that had only appeared to be open, until the writer
	// has taken back that it was one.
	withdraw bool
	// again is when it began again after it was over, and before that was recorded: a list
	// ends the silence before it, and not the one after it. Zero if it did not.
	again time.Time
}

// begin begins a silence at the last observation, unless there is one: the watch has ended,
// or there is an outage.
func (s *silence) begin(since, now time.Time, outage bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.since.IsZero():
		s.silent = silent{since: since, found: now}
	case !s.watched.IsZero():
		s.watched, s.again = time.Time{}, since
	}
	s.outage = s.outage || outage
	s.unwatched = s.unwatched || !outage
}

// beginApparent is begin for a watch that had only appeared to be open since a time, or was
// behind: all that came after that is late.
func (s *silence) beginApparent(since time.Time) {
	s.begin(since, since, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.Equal(since) {
		s.withdraw = true
	}
}

func (s *silence) withdrawn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withdraw = false
}

// paused is called when the program has not run since a time, until now; the open watch is then
// replaced. The program was seen to run at that time, and may have run a moment longer: only what
// was observed in the second half is surely of the pause.
func (s *silence) paused(since, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() || s.since.After(since) { // the end of a watch may have been noticed first
		s.since, s.found = since, since.Add(now.Sub(since)/2)
	}
	s.watched, s.unwatched = time.Time{}, true
}

// begun begins a silence that began before the writer.
func (s *silence) begun(since, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent{since: since, found: now, start: true, unwatched: true}
}

// end is called when a list is complete, a watch is opened, or an outage is over; reach is the
// RV of the cache. It reports whether that ends a silence.
func (s *silence) end(now time.Time, reach uint64, settle time.Duration, outage bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage = false; !outage {
		s.unwatched = false
	}
	if s.since.IsZero() || s.unwatched || !s.watched.IsZero() {
		return false
	}
	if !s.start && now.Sub(s.since) < s.least {
		s.silent = silent{}
		return false
	}
	s.watched, s.settled, s.reach, s.again = now, time.Now().Add(settle), reach, time.Time{}
	return true
}

// clear is called when there was no silence, or it is recorded as a gap that ends at a time. It
// goes on from there if it has begun again.
func (s *silence) clear(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again.IsZero() {
		s.silent = silent{}
		return
	}
	if s.again.After(at) {
		at = s.again
	}
	s.silent = silent{since: at, found: at, unwatched: s.unwatched, outage: s.outage}
}

// settle ends a silence that is over with a head, unless it has begun again.
func (s *silence) settle(head uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over(head) {
		s.silent = silent{}
	}
}

func (s *silence) get() silent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent
}

// settling returns how long the watch that ends the silence may send events of it.
func (s silent) settling() time.Duration {
	if s.watched.IsZero() {
		return 0
	}
	return time.Until(s.settled)
}

// over reports whether the events of the silence are complete up to a head. If a list has
// ended it, they are only known when the record has reached that: it then has a gap instead.
func (s silent) over(head uint64) bool {
	return !s.watched.IsZero() && s.settling() <= 0 && head >= s.reach
}

// split divides events into those observed before the silence and those of it.
func (s silent) split(events []history.Event) (before, late []history.Event) {
	// The writer that began in a silence observed nothing before.
	n := slices.IndexFunc(events, func(e history.Event) bool { return s.start || e.At.After(s.found) })
	if s.since.IsZero() || n < 0 {
		return events, nil
	}
	return events[:n], events[n:]
}

// until returns when the last of the events of the silence came; head is the time of the
// head after them.
func (s silent) until(late []history.Event, head time.Time) time.Time {
	at := lastAt(late, s.watched)
	switch {
	case at.Before(s.watched):
		return s.watched
	case at.IsZero():
		return head
	}
	return at
}
