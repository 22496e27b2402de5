// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// TestPause: what the API server sends during a pause of the program comes late, also if the
// first to run again is a write.
func TestPause(t *testing.T) {
	for name, read := range modes {
		inBubble(t, name, func(t *testing.T) {
			api := newFakeAPI(t)
			r := api.recorder(t, vfs.NewMem())
			r.delay.events = 50 * time.Millisecond
			r.listenEvery, r.trimEvery, r.rediscover = time.Hour, time.Minute, time.Minute // only writes feel the pulse
			g := api.run(t, r)
			if read {
				g.served()
			}
			before := api.write("a", "1")
			st := g.recorded(before)
			r.mu.Lock()
			p := &r.session.pulse
			r.mu.Unlock()
			time.Sleep(20 * time.Millisecond) // the times of a history have milliseconds
			p.mu.Lock()
			p.beat, p.at = p.beat.Add(-time.Hour), time.Now().Add(-10*time.Second)
			p.mu.Unlock()
			after := api.write("a", "2")
			g.recorded(after)
			g.watched()
			checkLate(t, st, before, after)
			timely := api.write("a", "3")
			g.recorded(timely)
			if gaps := st.Gaps(); len(gaps) != 1 {
				t.Errorf("gaps %v", gaps)
			}
		})
	}
}

// TestPauseThenOutage: if the API server does not answer after a pause, nothing is known from the
// begin of the pause on, not from that of the outage, and what changed comes late.
func TestPauseThenOutage(t *testing.T) {
	for name, read := range modes {
		inBubble(t, name, func(t *testing.T) {
			api := newFakeAPI(t)
			r := api.recorder(t, vfs.NewMem())
			r.listenEvery, r.trimEvery, r.rediscover = time.Hour, time.Minute, time.Minute // only writes feel the pulse
			g := api.run(t, r)
			if read {
				g.served()
			}
			before := api.write("a", "1")
			st := g.recorded(before)
			g.watched()
			r.mu.Lock()
			s := r.session
			r.mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			began := time.Now()
			time.Sleep(10 * time.Second)
			api.change(func() { api.refuse = http.StatusServiceUnavailable }) // the watch stays open
			s.pulse.mu.Lock()
			s.pulse.beat, s.pulse.at = s.pulse.beat.Add(-time.Hour), began
			s.pulse.mu.Unlock()
			s.feelPulse()
			time.Sleep(time.Minute)
			if err := r.Sync(t.Context(), pods); !errors.Is(err, past.ErrUnwatched) {
				t.Errorf("in the outage: %v", err)
			}
			api.write("a", "2")
			api.change(func() { api.refuse = 0 })
			after := api.write("a", "3")
			g.recorded(after)
			g.watched()
			if gap := checkLate(t, st, before, after); gap.Since.After(began) {
				t.Errorf("the gap begins at %v, the pause at %v", gap.Since, began)
			}
		})
	}
}

// TestPauseFoundLate: a silence that begins with a dead connection, right after a pause, is that of
// the pause.
func TestPauseFoundLate(t *testing.T) {
	s, now := &silence{}, time.Now()
	s.begin(now, now, false)
	s.end(now.Add(time.Second), 0, 0, false) // a watch is open again
	s.paused(now.Add(-time.Minute), now)
	if got := s.get(); !got.since.Equal(now.Add(-time.Minute)) || got.found.After(now.Add(-20*time.Second)) || got.over(0) {
		t.Errorf("%+v", got)
	}
	s.end(now, 0, 0, true)
	if got := s.get(); got.since.IsZero() || got.over(0) {
		t.Errorf("without a new watch: %+v", got)
	}
	s.end(now, 0, 0, false)
	if got := s.get(); !got.over(0) {
		t.Errorf("with a new watch: %+v", got)
	}
}
