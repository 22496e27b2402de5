// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
)

// TestClockStep: a clock that is set back while the recorder runs, or between two runs, is
// recorded by the next event, or without one. Recording, reads and retention go on.
func TestClockStep(t *testing.T) {
	api, fs := newFakeAPI(t), vfs.NewMem()
	start := time.Now().Round(0)
	var ahead atomic.Int64
	clock := func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	run := func() *rig {
		r := api.recorder(t, fs)
		r.opts.Now, r.opts.MaxAge, r.trimEvery = clock, 24*time.Hour, 10*time.Millisecond
		return api.run(t, r)
	}
	// A bookmark that was observed before a step may be written after it, and then makes
	// another one: this clock cannot tell that it is late.
	stepped := func(st *history.Stream, before int) {
		t.Helper()
		until(t, "a step of the clock", func() bool {
			return len(st.ClockSteps()) > before && st.Head().At.Equal(clock().Truncate(time.Millisecond))
		})
		head := st.Head().RV
		if _, err := st.At(t.Context(), clock()); !errors.Is(err, history.ErrClock) {
			t.Errorf("the state at a time that the clock showed twice: %v", err)
		}
		if m, err := st.AtAge(t.Context(), clock()); err != nil || m.RV < head {
			t.Errorf("the state now: %d, not %d: %v", m.RV, head, err)
		}
	}
	year := int64(365 * 24 * time.Hour)
	api.write("a", "1")
	g := run()
	g.recorded(102)
	ahead.Store(year + 2*int64(time.Hour))
	g.recorded(api.write("a", "2"))
	ahead.Store(year + int64(time.Hour))
	stepped(g.recorded(api.write("a", "3")), 0)
	n := len(g.recorded(0).ClockSteps())
	ahead.Store(year)
	stepped(g.recorded(0), n) // without an event
	n = len(g.recorded(0).ClockSteps())
	g.stop()
	ahead.Store(0)
	g = run()
	st := g.recorded(api.write("a", "4"))
	stepped(st, n)
	ahead.Store(int64(30 * time.Hour))
	last := api.write("a", "5")
	g.recorded(last)
	until(t, "the retention", func() bool { return len(st.ClockSteps()) == 0 })
	if from := st.Span().From.At; from.After(clock()) {
		t.Errorf("the retained span begins at %v, which is in the future", from)
	}
	want(t, "state", state(t, st), "a=5")
	g.stop()
}

// TestListTime: the time of a list is that at which reads begin to wait for it, not that at
// which it arrived: until the API server had proved to be the cluster's, the state before it
// was served as the present one.
func TestListTime(t *testing.T) {
	api := newFakeAPI(t)
	start := time.Now().Round(0).Truncate(time.Millisecond)
	var ahead atomic.Int64
	r := api.recorder(t, vfs.NewMem())
	r.opts.Now = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	g := api.run(t, r)
	st := g.recorded(api.write("a", "1"))
	rec, _ := r.continuity(pods).current()
	list, err := stateOf(t.Context(), st, new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	list.RV = 500
	sink := rec.Sink(t.Context()).(*historySink)
	sink.same = func() error {
		ahead.Store(int64(time.Minute))
		return nil
	}
	sink.Begin()
	if sink.Replace(list, false); sink.err != nil {
		t.Fatal(sink.err)
	}
	if gaps := st.Gaps(); len(gaps) != 1 || gaps[0].To != 500 || !gaps[0].Until.Equal(start.Add(time.Minute)) {
		t.Errorf("gaps %v, want one until %v", gaps, start.Add(time.Minute))
	}
}

// TestStepBeforeWrite: what was observed before the clock was set back, and is not written
// yet, is not recorded as observed after it.
func TestStepBeforeWrite(t *testing.T) {
	api, clock := newFakeAPI(t), clocktest.New()
	r := api.recorder(t, vfs.NewMem())
	r.opts.Now, r.trimEvery = clock.Now, 10*time.Millisecond
	r.delay.events, r.delay.head = 1<<40, 1<<40
	api.write("a", "1")
	g := api.run(t, r)
	st := g.recorded(102)
	rec, _ := r.continuity(pods).current()
	rv := api.write("a", "2")
	until(t, "the event", func() bool { return rec.w.position().RV >= rv })
	clock.Set(-time.Hour)
	until(t, "the step", func() bool { return len(st.ClockSteps()) > 0 })
	if got := st.ClockSteps(); len(got) != 1 || got[0].RV < rv {
		t.Errorf("steps %v, want one at %d", got, rv)
	}
}
