// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
)

var nodes = kube.Resource{Version: "v1", Name: "nodes"}

// A steppedStore is a store whose clock a test sets.
type steppedStore struct {
	*Store
	t   *testing.T
	fs  *vfs.MemFS
	st  *Stream
	now time.Time
	rv  uint64
}

func newSteppedStore(t *testing.T) *steppedStore {
	s := &steppedStore{t: t, fs: vfs.NewMem(), now: time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)}
	s.open()
	st, err := s.Stream(pods)
	if err != nil {
		t.Fatal(err)
	}
	s.st, s.rv = st, 1
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 1, s.now); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *steppedStore) open() {
	var err error
	if s.Store, err = Open("s", Options{Cluster: "c", FS: s.fs, MaxAge: 24 * time.Hour, Now: func() time.Time { return s.now }}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.Close() })
}

// reopen is a restart of the process.
func (s *steppedStore) reopen() {
	if err := s.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.open()
	var err error
	if s.st, err = s.Stream(pods); err != nil {
		s.t.Fatal(err)
	}
}

// event appends the creation of a Pod at the present time of the clock.
func (s *steppedStore) event() {
	s.t.Helper()
	s.rv++
	o := object(kube.Key(fmt.Sprintf("a/p%d", s.rv)), s.rv, 1)
	if err := s.st.Append([]Event{{Type: kube.Added, Object: o, At: s.now}}, s.rv, s.now); err != nil {
		s.t.Fatal(err)
	}
}

// at returns the RV at a time, or "clock", "before", "future".
func (s *steppedStore) at(t time.Time) string {
	s.t.Helper()
	return answer(s.st.At(s.t.Context(), t))
}

func answer(m Moment, err error) string {
	switch {
	case errors.Is(err, ErrClock):
		return "clock"
	case errors.Is(err, ErrBefore):
		return "before"
	case errors.Is(err, ErrFuture):
		return "future"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(m.RV)
}

// TestClockStep: after the clock was set back, by a second, an hour or a year, also over
// a restart, times that it showed twice are refused, all others are answered, events are
// counted, and retention goes on.
func TestClockStep(t *testing.T) {
	for _, back := range []time.Duration{time.Second, time.Hour, 365 * 24 * time.Hour} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(back, restart), func(t *testing.T) {
				s := newSteppedStore(t)
				start := s.now
				s.now = s.now.Add(10 * time.Minute)
				s.event() // 2
				right := s.now
				s.now = s.now.Add(back) // the clock is ahead
				s.event()               // 3
				s.now = s.now.Add(time.Minute)
				s.event() // 4
				ahead := s.now
				s.now = s.now.Add(-back)
				set := s.now
				if restart {
					s.reopen()
				}
				if got := answer(s.st.AtAge(t.Context(), s.now)); got != "4" {
					t.Errorf("now, before anything is observed: %s", got)
				}
				if got := s.at(s.now); got != "clock" {
					t.Errorf("at a time that was shown twice, before anything is observed: %s", got)
				}
				if err := s.Trim(t.Context()); err != nil { // as every minute
					t.Fatal(err)
				}
				s.now = s.now.Add(200 * time.Millisecond)
				s.event() // 5
				s.now = s.now.Add(200 * time.Millisecond)
				if restart {
					s.reopen()
				}
				for at, want := range map[time.Time]string{
					start.Add(-1): "before", start: "1", right.Add(-1): "1", right: "2",
					set: "clock", s.now: "clock", ahead: "clock", ahead.Add(time.Minute): "future",
				} {
					if got := s.at(at); got != want {
						t.Errorf("at %v: %s, not %s", at.Sub(start), got, want)
					}
				}
				for ago, want := range map[time.Duration]string{0: "5", 300 * time.Millisecond: "4", time.Hour: "clock"} {
					if got := answer(s.st.AtAge(t.Context(), s.now.Add(-ago))); got != want {
						t.Errorf("%v ago: %s, not %s", ago, got, want)
					}
				}
				for rv, want := range map[uint64]time.Time{2: right, 3: right.Add(back), 4: ahead, 5: s.now.Add(-200 * time.Millisecond)} {
					if got, err := s.st.TimeOf(t.Context(), rv); !got.Equal(want) || err != nil {
						t.Errorf("the time of %d is %v, not %v: %v", rv, got, want, err)
					}
				}
				counts, err := s.st.EventCounts(t.Context(), start, s.now.Add(time.Second), time.Second, nil)
				n := 0
				for _, c := range counts {
					n += c.Added
				}
				if want := map[time.Duration]int{time.Second: 2}[back] + 2; n != want || err != nil {
					t.Errorf("%d events counted, not %d: %v", n, want, err)
				}
				// The clock passes the time that it had shown.
				s.now = ahead.Add(time.Minute)
				s.event() // 6
				if got := s.at(s.now); got != "6" {
					t.Errorf("after the clock has passed it: %s", got)
				}
				if got := s.at(ahead.Add(time.Second)); got != "5" {
					t.Errorf("just after the clock has passed it: %s", got)
				}
			})
		}
	}
}

// TestClockStepRetention: what was observed with a clock that was ahead is removed when
// it is too old by the clock that was set back, of a stream without writer, too.
func TestClockStepRetention(t *testing.T) {
	s := newSteppedStore(t)
	idle, err := s.Stream(nodes)
	if err == nil {
		err = idle.Begin(podForm, slices.Values([]*scan.Object(nil)), 1, s.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.AddDate(1, 0, 0)
	s.event() // 2, a year ahead
	if err := idle.Append(nil, 5, s.now); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.AddDate(-1, 0, 0).Add(time.Minute)
	for range 3 {
		if err := s.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(10 * time.Hour)
		s.event() // 3, 4, 5
	}
	if err := s.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.st.Span().From.RV; got != 2 {
		t.Errorf("30 hours after the step, the retained span begins at %d", got)
	}
	if got, err := s.st.ClockSteps(), s.st.Check(2); len(got) != 0 || err != nil {
		t.Errorf("steps %v, %v", got, err)
	}
	if got := idle.Span().From; got.RV != 5 || got.At.After(s.now) {
		t.Errorf("an idle stream begins at %v", got)
	}
	s.reopen()
	if got := s.at(s.now.AddDate(0, 6, 0)); got != "future" {
		t.Errorf("at a time that only the removed part has shown: %s", got)
	}
	if got := s.at(s.now); got != "5" {
		t.Errorf("now: %s", got)
	}
	if _, err := s.NewEpoch(nodes); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(48 * time.Hour)
	if err := s.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := s.Streams(nodes); len(all) != 1 {
		t.Errorf("%d epochs of a resource whose first one ended two days ago", len(all))
	}
}

// TestWrongClockAtStart: a clock that is wrong when the process starts, and is set soon
// after, removes nothing that is younger than the maximum age.
func TestWrongClockAtStart(t *testing.T) {
	for name, off := range map[string]time.Duration{"behind": -365 * 24 * time.Hour, "ahead": 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSteppedStore(t)
			for range 20 { // of the last 20 hours
				s.now = s.now.Add(time.Hour)
				s.event()
			}
			idle, err := s.Stream(nodes)
			if err == nil {
				err = idle.Begin(podForm, slices.Values([]*scan.Object(nil)), 1, s.now)
			}
			var next *Stream
			if err == nil {
				next, err = s.NewEpoch(nodes) // the first one has ended
			}
			if err == nil {
				err = next.Begin(podForm, slices.Values([]*scan.Object(nil)), 2, s.now)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.now = s.now.Add(off)
			s.reopen()
			trim := func() {
				t.Helper()
				if err := s.Trim(t.Context()); err != nil {
					t.Fatal(err)
				}
				if from := s.st.Span().From.RV; from != 1 {
					t.Fatalf("the retained span begins at %d", from)
				}
				if all := s.Streams(nodes); len(all) != 2 {
					t.Fatalf("%d epochs", len(all))
				}
			}
			trim()
			s.event()
			trim()
			s.now = s.now.Add(-off).Add(time.Minute)
			s.event()
			trim()
			s.now = s.now.Add(10 * time.Minute)
			trim()
		})
	}
}

// TestClockModel compares reads by time with a model, while a clock steps at random. A
// time that one era has is answered exactly; no other is.
func TestClockModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(newSeed(t), 7))
	for range rounds(t, 10) {
		s := newSteppedStore(t)
		s.opts.MaxAge = 0
		type seen struct {
			at  time.Time
			rv  uint64
			era int
		}
		all := []seen{{s.now, 1, 0}}
		era := 0
		for range 40 {
			d := time.Duration(rnd.IntN(60_000)+1) * time.Millisecond
			switch rnd.IntN(6) {
			case 0:
				d = -d - maxClockError
			case 1:
				d *= 100
			case 2:
				s.reopen()
			}
			if s.now = s.now.Add(d); d < 0 {
				era++
			}
			s.event()
			all = append(all, seen{s.now, s.rv, era})
		}
		for range 200 {
			at := all[rnd.IntN(len(all))].at.Add(time.Duration(rnd.IntN(20_000)-10_000) * time.Millisecond)
			want, eras := "before", 0
			for e := range era + 1 {
				var first, last time.Time
				state := ""
				for i, one := range all {
					if one.era != e {
						continue
					}
					if first.IsZero() {
						if first = one.at; i > 0 { // the clock was set before the observation
							state = fmt.Sprint(all[i-1].rv)
						}
					}
					if last = one.at; !one.at.After(at) {
						state = fmt.Sprint(one.rv)
					}
				}
				if !at.Before(first) && (e == era || !at.After(last)) {
					eras++
					want = state
				}
			}
			switch {
			case eras > 1:
				want = "clock"
			case eras == 1 && at.After(s.now):
				want = "future"
			}
			if got := s.at(at); got != want {
				t.Fatalf("at %v: %s, not %s; %v", at, got, want, all)
			}
		}
		if counts, err := s.st.EventCounts(t.Context(), all[0].at.Add(-24*time.Hour), s.now.Add(240*time.Hour), time.Hour, nil); err != nil {
			t.Fatal(err)
		} else {
			n := 0
			for _, c := range counts {
				n += c.Added
			}
			if n != len(all)-1 {
				t.Errorf("%d events counted, of %d", n, len(all)-1)
			}
		}
	}
}

// TestLateObservation: an observation that comes late, made by the same clock before the
// last recorded one, is no step of the clock. Its recorded time is that of the last one.
func TestLateObservation(t *testing.T) {
	s := newSteppedStore(t)
	now := time.Now() // with a reading of the monotonic clock
	for i, at := range []time.Time{now, now.Add(-3 * time.Second), now.Add(-time.Second)} {
		s.now = at
		s.event()
		if got, want := s.st.Head(), (Moment{uint64(i + 2), now.Truncate(time.Millisecond)}); got.RV != want.RV || !got.At.Equal(want.At) {
			t.Errorf("the head is %v, not %v", got, want)
		}
	}
	if got := s.st.ClockSteps(); len(got) != 0 {
		t.Errorf("steps: %v", got)
	}
	for e, err := range s.st.Events(t.Context(), 1, 4) {
		if err != nil || !e.At.Equal(now.Truncate(time.Millisecond)) {
			t.Errorf("an event at %v: %v", e.At, err)
		}
	}
}

// TestShortStep: a clock that is set back by less than what has passed since the last
// observation shows some times twice, too. The monotonic clock tells that it was set.
func TestShortStep(t *testing.T) {
	s := newSteppedStore(t)
	last := s.now.Add(time.Minute)
	after := func(passed, back time.Duration) {
		s.now = clocktest.WithMonotonic(last.Add(passed-back), passed+1)
	}
	after(0, 0)
	s.event() // 2
	after(5*time.Second, 2*time.Second)
	if got := s.at(last.Add(-time.Second)); got != "clock" {
		t.Errorf("at a time that was shown twice, before anything is observed: %s", got)
	}
	s.event() // 3
	after(6*time.Second, 2*time.Second)
	s.event() // 4
	want := ClockStep{RV: 2, From: last, To: last.Add(-2 * time.Second)}
	if got := s.st.ClockSteps(); len(got) != 1 || got[0].RV != want.RV || !got[0].From.Equal(want.From) || !got[0].To.Equal(want.To) {
		t.Errorf("steps %v, not %v", got, want)
	}
	for passed, want := range map[time.Duration]string{-3 * time.Second: "1", -time.Second: "clock", time.Second: "2", 3 * time.Second: "3", 4 * time.Second: "4"} {
		if got := s.at(last.Add(passed)); got != want {
			t.Errorf("at %v: %s, not %s", passed, got, want)
		}
	}
	for ago, want := range map[time.Duration]string{0: "4", time.Second: "3", 5 * time.Second: "2", 7 * time.Second: "clock"} {
		if got := answer(s.st.AtAge(t.Context(), s.now.Round(0).Add(-ago))); got != want {
			t.Errorf("%v ago: %s, not %s", ago, got, want)
		}
	}
}

// TestClockSlightlyBehind: a clock that goes back by less than a step does not hide what is
// newest if ages count back from the last recorded time.
func TestClockSlightlyBehind(t *testing.T) {
	s := newSteppedStore(t)
	for range 2 {
		s.now = s.now.Add(time.Second)
		s.event()
	}
	for _, back := range []time.Duration{time.Millisecond, maxClockError - time.Millisecond} {
		s.now = s.now.Add(-back)
		for range 2 {
			for ago, want := range map[time.Duration]string{0: "3", 999 * time.Millisecond: "2", time.Second: "2", 1001 * time.Millisecond: "1"} {
				if got := answer(s.st.AtAge(t.Context(), s.now.Add(s.st.Behind(s.now)-ago))); got != want {
					t.Errorf("%v behind, %v ago: %s, want %s", back, ago, got, want)
				}
			}
			s.reopen()
		}
		s.now = s.now.Add(back)
	}
}
