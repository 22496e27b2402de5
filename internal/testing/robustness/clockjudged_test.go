// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
)

// after returns the true time so many seconds after noon.
func after(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// steppedStory is story with a version every ten seconds. The clock is set back by 30 s
// after 45 s, and the present state is read every five seconds, until 100 s.
//
//	true time       10   20   30   40 45       50   60   70   80       100
//	clock      0    10   20   30   40 45 │ 15  20   30   40   50       70
//	RV         10   11   12   13   14    │     15   16   17   18
func steppedStory() *clockStory {
	s := &clockStory{truth: story(), settings: []clocktest.Setting{{At: noon}, {At: after(45), Ahead: -30 * time.Second}}, healed: after(100)}
	for _, v := range s.truth.versions {
		v.seen = after(float64(v.RV-10) * 10)
	}
	for n := 1.0; n < 100; n += 5 {
		r := s.list(n, min(18, uint64(10+n/10)))
		r.Ago = true
		s.reads = append(s.reads, r)
	}
	return s
}

// list is a list with the state at an RV, requested at a true time; at RV 0 it is 410.
func (s *clockStory) list(began float64, rv uint64) *clockRead {
	r := &clockRead{exchange: &exchange{Selector: all, Began: after(began), Ended: after(began), Code: 200, RV: rv}}
	if r.When = s.reading(r.Began); rv == 0 {
		r.Code, r.End = 410, "the clock was set back from …"
	} else {
		r.Items = s.truth.expectedList(all, rv)
	}
	return r
}

// TestClockReads shows which reads the judge of TestClock accepts, and that it rejects each
// wrong one.
func TestClockReads(t *testing.T) {
	s := steppedStory()
	at := func(seconds float64, rv uint64) *clockRead { // after noon by the clock
		r := s.list(100, rv)
		r.When = after(seconds)
		return r
	}
	ago := func(seconds float64, rv uint64) *clockRead {
		r := at(70-seconds, rv)
		r.Ago, r.Age = true, time.Duration(seconds*float64(time.Second))
		return r
	}
	spoilt := func(r *clockRead, by func(*clockRead)) *clockRead { by(r); return r }
	code := func(r *clockRead, code int) *clockRead { r.Code = code; return r }
	for _, test := range []struct {
		name string
		r    *clockRead
		want string // part of the judgment, "" if correct
	}{
		{"before the step", at(8.5, 10), ""},
		{"before the step, at a version", at(10, 11), ""},
		{"before the step, a version too late", at(9.999, 11), "a state with 1 versions, not 0 to 0"},
		{"before the step, a version too early", at(11.5, 10), "a state with 0 versions, not 1 to 1"},
		{"before the step, refused", at(9, 0), "showed the time once"},
		{"shown twice, refused", at(30, 0), ""},
		{"shown twice, refused without a reason", spoilt(at(30, 0), func(r *clockRead) { r.End = "before the record" }), "without the step"},
		{"shown twice, the older state", at(30, 13), "not refused"},
		{"shown twice, the newer state", at(30, 16), "not refused"},
		{"shown twice, the newest state", at(30, 18), "not refused"},
		{"shown before the step, after the last observation", at(44, 0), ""},
		{"and the older state", at(44, 14), ""},
		{"and the newer state", at(44, 17), ""},
		{"and a state that neither had", at(44, 15), "a state with 5 versions"},
		{"after the step", at(49.999, 17), ""},
		{"after the step, at a version", at(50, 18), ""},
		{"after the step, a version too late", at(49.999, 18), "a state with 8 versions, not 7 to 7"},
		{"after the step, refused", at(60, 0), "showed the time once"},
		{"in the future", code(at(80, 0), 400), ""},
		{"in the future, answered", at(80, 18), "in the future"},
		{"in the future, answered when it was over", spoilt(at(80, 18), func(r *clockRead) { r.Ended = after(110) }), ""},
		{"before the record, refused", at(-10, 0), ""},
		{"before the record, answered", at(-10, 10), "has not shown"},
		{"an age", ago(30, 17), ""},
		{"an age, as if it were a time before the step", ago(30, 14), "a state with 4 versions, not 6 to 7"},
		{"an age, refused", ago(30, 0), "does not reach back"},
		{"an age beyond the step", ago(65, 0), ""},
		{"an age beyond the step, answered", ago(65, 10), "reaches back beyond"},
		{"now", ago(0, 18), ""},
		{"now, an earlier state", ago(0, 17), "a state with 7 versions, not 8 to 8"},
		{"an RV", spoilt(s.list(100, 13), func(r *clockRead) { r.Asked = 13 }), ""},
		{"an RV, refused", spoilt(s.list(100, 0), func(r *clockRead) { r.Asked = 13 }), "refused, but the record has"},
		{"an RV, another state", spoilt(s.list(100, 14), func(r *clockRead) { r.Asked = 13 }), "another RV"},
		{"another list", spoilt(at(60, 18), func(r *clockRead) { r.Items = r.Items[1:] }), "item 0"},
		{"no answer", code(at(60, 0), 503), "neither a state nor 410"},
	} {
		got := s.judgeRead(test.r, &clockSummary{})
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestClockPrompt: without faults, a change is observed when it is written.
func TestClockPrompt(t *testing.T) {
	s := steppedStory()
	for _, one := range []struct {
		prompt  bool
		outages []downtime
		want    string
	}{
		{false, nil, ""}, {true, nil, "a state with 0 versions, not 1 to 1"}, {true, []downtime{{after(50), after(51)}}, "a state with 0 versions"},
		{true, []downtime{{after(5), after(11)}}, ""}, {true, []downtime{{after(9), after(9.5)}}, ""},
	} {
		s.prompt, s.outages = one.prompt, one.outages
		s.judges(t, []clockAnswer{{10, 10, one.want}, {10, 11, ""}})
	}
}

// TestClockGaps: a gap may hide the state at a time, but a state inside it is wrong.
func TestClockGaps(t *testing.T) {
	s := steppedStory()
	s.gaps = []gap{{16, 18}} // from 60 to 81 s
	for i, r := range s.reads {
		if r.RV == 17 {
			s.reads[i] = s.list(r.Began.Sub(noon).Seconds(), 16)
			s.reads[i].Ago = true
		}
	}
	s.judges(t, []clockAnswer{
		{32, 0, ""}, {32, 16, "not refused"}, {46, 0, ""}, {46, 16, ""}, {46, 17, "inside the gap"},
		{46, 18, "a state with 8 versions"}, {60, 18, ""}, {60, 0, "showed the time once"},
	})
}

// A clockAnswer is the state at a time, or 410, and part of the judgment.
type clockAnswer struct {
	seconds float64
	rv      uint64
	want    string
}

func (s *clockStory) judges(t *testing.T, all []clockAnswer) {
	t.Helper()
	for _, one := range all {
		r := s.list(100, one.rv)
		r.When = after(one.seconds)
		if got := s.judgeRead(r, &clockSummary{}); (one.want == "") != (got == "") || !strings.Contains(got, one.want) {
			t.Errorf("at %v, %d: %q, want %q", one.seconds, one.rv, got, one.want)
		}
	}
}

// TestClockRestart: if the gateway was restarted, it counts the times that the new clock showed
// before its next observation to the old clock only.
func TestClockRestart(t *testing.T) {
	s := steppedStory()
	s.downtimes = []downtime{{after(41), after(48)}}
	s.reads = append(s.reads[:9], s.reads[10:]...) // while no gateway was running
	s.judges(t, []clockAnswer{
		{18, 11, ""}, {18, 0, ""}, {18, 12, "a state with 2 versions"},
		{30, 0, ""}, {30, 13, "not refused"}, {60, 18, ""}, {60, 0, "showed the time once"},
	})
}

// TestClockWaited: a read of now that waited while the clock was set may show a later state,
// which proves nothing about the moment at which it began.
func TestClockWaited(t *testing.T) {
	for _, one := range []struct {
		ended float64
		want  string
	}{{46, ""}, {44, "not refused"}} {
		s := steppedStory()
		waited := s.list(44, 18)
		waited.Ago, waited.Ended = true, after(one.ended)
		s.reads = append(s.reads, waited)
		s.judges(t, []clockAnswer{{49.999, 17, one.want}})
	}
}

// TestClockLate: a time in a late gap is refused, and something explains the gap.
func TestClockLate(t *testing.T) {
	s := steppedStory()
	s.settings = s.settings[:1]
	s.late = []pastGap{{gap{13, 13}, after(32), after(38)}}
	s.judges(t, []clockAnswer{{31, 13, ""}, {35, 0, ""}, {35, 13, "in a late gap"}, {40, 14, ""}, {39, 0, "showed the time once"}})
	for _, one := range []struct {
		prompt   bool
		downtime downtime
		want     int
	}{{true, downtime{after(33), after(37)}, 0}, {true, downtime{after(50), after(60)}, 1}, {false, downtime{}, 0}} {
		s.prompt, s.downtimes = one.prompt, []downtime{one.downtime}
		if got := s.judgeLate(); len(got) != one.want {
			t.Errorf("%+v: %q", one, got)
		}
	}
}
