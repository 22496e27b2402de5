// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"sync"
	"time"
)

// A pulse notices that the program was paused: stopped by a signal or a debugger, frozen with
// its container, or without a processor. What the API server sent meanwhile comes at the end.
type pulse struct {
	mu   sync.Mutex // guards what follows
	beat time.Time  // when the program was last seen to run
	at   time.Time  // the same by the clock of the recorded times
}

// check notes that the program runs. It returns the begin of a pause that was longer than
// least and has just ended, by the clock of the recorded times.
func (p *pulse) check(now time.Time, least time.Duration) (since time.Time, paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, paused = p.at, !p.beat.IsZero() && time.Since(p.beat) > least
	p.beat, p.at = time.Now(), now
	return since, paused
}

// live feels the pulse until the session ends. Unlike listen, it never waits for the disk.
func (s *session) live() {
	for s.feelPulse(); sleep(s.ctx, s.r.listenEvery); {
		s.feelPulse()
	}
}

// feelPulse makes a pause of the program a silence of all resources. It is called every
// second, and before each write, so that no event of a pause is written as one that was
// observed in time.
func (s *session) feelPulse() {
	now := s.r.opts.Now()
	since, paused := s.pulse.check(now, s.r.maxPause)
	if !paused {
		return
	}
	s.r.log.Warn("the program did not run for a while: what changed meanwhile is recorded with the time of its end", "since", since)
	for _, t := range s.all() {
		t.w.silence.paused(since, now)
		t.w.awake()
		s.owner.Doubt(t.id, errPaused)
	}
}

// errPaused ends the watches that were open during a pause: their connections may be dead, and
// only a new watch shows that nothing is missing.
var errPaused = errors.New("the program did not run for a while")
