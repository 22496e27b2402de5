// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
)

// TestNotRecorded: the Status says how to record a resource, or that the history is not
// open yet.
func TestNotRecorded(t *testing.T) {
	story, _ := pasttest.NewStory(t)
	foos := kube.Resource{Version: "v1", Name: "foos"}
	knowing := newPast(t, story)
	knowing.Lacks = func(id kube.Resource) bool { return id == foos }
	for _, test := range []struct {
		past *Past
		id   kube.Resource
		code int32
		want string
	}{
		{nil, pasttest.Nodes, http.StatusNotFound, "--data-dir"},
		{newPast(t, &pasttest.Record{}), pasttest.Nodes, http.StatusServiceUnavailable, "not open"},
		{newPast(t, story), pasttest.Deployments, http.StatusNotFound, "--record=core,deployments.apps"},
		{newPast(t, story), foos, http.StatusNotFound, "--record=core,foos"},
		{knowing, foos, http.StatusNotFound, "the server could not find the requested resource: it has no foos in v1"},
		{knowing, pasttest.Deployments, http.StatusNotFound, "--record=core,deployments.apps"},
		{newPast(t, Recording{History: story.History}), pasttest.Deployments, http.StatusNotFound, "this recording has no deployments.apps"},
		{newPast(t, Recording{History: story.History}), pasttest.Secrets, http.StatusNotFound, "this recording has no secrets"},
		{newPast(t, story), pasttest.Secrets, http.StatusNotFound, "--record-secrets"},
		{newPast(t, story), kube.Resource{Group: "example.com", Version: "v1", Name: "secrets"}, http.StatusNotFound, "--record-secrets"},
		{newPast(t, story), kube.Resource{Version: "v2", Name: "pods"}, http.StatusNotFound, "not recorded as v2, but as v1"},
	} {
		if s := test.past.NotRecorded(test.id); s.Code != test.code || !strings.Contains(s.Message, test.want) {
			t.Errorf("%v: %d %s", test.id, s.Code, s.Message)
		}
	}
}

// TestOtherStore: an RV that a resource has not reached is not looked up among those of
// other resources, which may be of another store (--etcd-servers-overrides, an
// aggregated API server): the upstream is asked.
func TestOtherStore(t *testing.T) {
	story, _ := pasttest.NewStory(t) // of Pods, up to 100
	nodes, err := story.History.NewEpoch(pasttest.Nodes)
	if err == nil {
		err = nodes.Begin(history.Form{ListKind: "NodeList", Item: pasttest.Pod("", "n", 5)}, func(func(*scan.Object) bool) {}, 500, pasttest.TimeOf(50))
	}
	if err != nil {
		t.Fatal(err)
	}
	p := newPast(t, story)
	at := kube.Moment{RV: 300}
	if m, err := p.Locate(t.Context(), pasttest.Pods, at); !errors.Is(err, history.ErrFuture) {
		t.Errorf("without an upstream: %d, %v", m.RV, err)
	}
	p.CatchUp = func(context.Context, kube.Resource) error { return errors.New("no proof") }
	if _, err := p.Locate(t.Context(), pasttest.Pods, at); p.Refusal(err).Code != http.StatusServiceUnavailable {
		t.Errorf("unknown upstream: %v", err)
	}
	p.CatchUp = func(context.Context, kube.Resource) error { return nil }
	if m, err := p.Locate(t.Context(), pasttest.Pods, at); !errors.Is(err, history.ErrFuture) {
		t.Errorf("not reached upstream: %d, %v", m.RV, err)
	}
	p.CatchUp = func(context.Context, kube.Resource) error { return story.Stream.Append(nil, 310, pasttest.TimeOf(310)) }
	if m, err := p.Locate(t.Context(), pasttest.Pods, at); err != nil || m.RV != 300 || !m.Newest {
		t.Errorf("reached upstream: %+v, %v", m, err)
	}
}

// TestClockStep: a time that the clock showed twice is refused with 410 and an explanation,
// also if the cluster's history began again in between. Times that it showed once, ages and
// RVs are states.
func TestClockStep(t *testing.T) {
	c := pasttest.NewCluster(t)
	p := newPast(t, &pasttest.Record{History: c.Store})
	st := c.Stream(pasttest.Pods, 100, 0)
	event := func(rv uint64, second float64) {
		t.Helper()
		o := pasttest.Thing(t, kube.Key("default/p"+kube.FormatRV(rv)), rv, `{kind: Pod, apiVersion: v1}`)
		if err := st.Append([]history.Event{{Type: kube.Added, Object: o, At: c.At(second)}}, rv, c.At(second)); err != nil {
			t.Fatal(err)
		}
	}
	event(110, 10)
	event(120, 1800)
	event(130, 60) // the clock was set back
	event(140, 90)
	at := func(second float64) kube.Moment { return kube.Moment{At: c.At(second)} }
	ago := func(second float64) kube.Moment { return kube.Moment{At: c.At(second), Ago: true} }
	check := func(when kube.Moment, want uint64) {
		t.Helper()
		state, err := p.Locate(t.Context(), pasttest.Pods, when)
		if want == 0 {
			if err == nil {
				t.Errorf("%v: at %d", when, state.RV)
			} else if s := p.Refusal(err); s.Code != http.StatusGone || !strings.Contains(s.Message, "clock") {
				t.Errorf("%v: %+v, %v", when, state, err)
			}
		} else if err != nil || state.RV != want {
			t.Errorf("%v: at %d, not %d: %v", when, state.RV, want, err)
		}
	}
	check(at(20), 110)
	check(at(60), 0)
	check(at(1000), 0)
	check(at(1800), 0)
	check(at(1801), 140)
	check(ago(50), 0)
	check(ago(75), 130)
	check(ago(3000), 140)
	check(kube.Moment{RV: 120}, 120)
	if state, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{RV: 120}); err != nil || !state.At.Equal(c.At(1800)) {
		t.Errorf("120 is of %v: %v", state.At, err)
	}
	event(150, 2000) // the clock is ahead again, and is set back before the next epoch
	var err error
	if st, err = c.Store.NewEpoch(pasttest.Pods); err != nil {
		t.Fatal(err)
	}
	c.Begin(st, 20, 1900)
	check(at(1801), 140)
	check(at(1900), 0)
	check(at(1999), 0)
	check(at(2001), 20)
	check(ago(1950), 20)
	check(ago(1801), 0) // the age reaches back beyond that step
	check(ago(75), 0)
}

// TestEpochsMeet: the time at which an epoch ends and the next one begins is the next one's.
func TestEpochsMeet(t *testing.T) {
	c := pasttest.NewCluster(t)
	p := newPast(t, &pasttest.Record{History: c.Store})
	st := c.Stream(pasttest.Pods, 100, 0)
	if err := st.AppendGap(nil, 120, c.At(10)); err != nil {
		t.Fatal(err)
	}
	next, err := c.Store.NewEpoch(pasttest.Pods)
	if err != nil {
		t.Fatal(err)
	}
	c.Begin(next, 120, 10)
	for _, when := range []kube.Moment{{At: c.At(10)}, {At: c.At(10), Ago: true}, {RV: 120}} {
		if state, err := p.Locate(t.Context(), pasttest.Pods, when); err != nil || state.Stream != next || state.RV != 120 {
			t.Errorf("%v: %+v, %v", when, state, err)
		}
	}
	if _, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{At: c.At(5)}); !errors.Is(err, history.ErrGap) {
		t.Errorf("between them: %v", err)
	}
}

// TestAfterRecording: what happened after the end of a finished recording is not known,
// whatever the clock shows. The end can be named as it is printed, to the second.
func TestAfterRecording(t *testing.T) {
	c := pasttest.NewCluster(t)
	p := newPast(t, Recording{History: c.Store, Slack: time.Second})
	c.Stream(pasttest.Pods, 100, 0)
	c.Stream(pasttest.Nodes, 100, 0.4)
	end := p.End()
	if !p.Present().Equal(end) || !end.Equal(c.At(0.4)) {
		t.Fatalf("the present is %v, the end %v", p.Present(), end)
	}
	for _, when := range []kube.Moment{
		{At: c.At(0)}, {At: end}, {At: end.Add(time.Nanosecond)}, {At: c.At(1)}, {At: end, Ago: true}, {RV: 100},
	} {
		if state, err := p.Locate(t.Context(), pasttest.Pods, when); err != nil || state.RV != 100 {
			t.Errorf("%v: at %d, %v", when, state.RV, err)
		}
	}
	for _, seconds := range []float64{1.001, 2, 60, 7200} {
		_, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{At: c.At(seconds)})
		if err == nil {
			t.Errorf("%v s after the start is a state", seconds)
		} else if s := p.Refusal(err); s.Code != http.StatusBadRequest || !strings.Contains(s.Message, "after the end of the recording, "+Stamp(end)) {
			t.Errorf("%v s after the start: %d %s", seconds, s.Code, s.Message)
		}
	}
}

// A clocked is a Record with a clock that the test sets.
type clocked struct {
	*pasttest.Record
	clock *clocktest.Clock
}

func (c clocked) Now() time.Time { return c.clock.Now() }

// TestClockSetMeanwhile: an age is one of the moment at which the request came, also if the
// clock is set while it waits.
func TestClockSetMeanwhile(t *testing.T) {
	c := pasttest.NewCluster(t)
	st := c.Stream(pasttest.Pods, 100, 0)
	for _, e := range []struct {
		rv     uint64
		second float64
	}{{110, 600}, {120, 1800}} {
		if err := st.Append(nil, e.rv, c.At(e.second)); err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range []time.Duration{0, -40 * time.Minute} {
		clock := clocktest.New()
		clock.Set(by)
		p := newPast(t, clocked{&pasttest.Record{History: c.Store, OnSync: func() error {
			clock.Set(-by)
			return nil
		}}, clock})
		if s, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{At: clock.Now(), Ago: true}); err != nil || s.RV != 120 {
			t.Errorf("set by %v before, and back meanwhile: at %d, %v", by, s.RV, err)
		}
	}
}

// TestClockBehind: now is not before the newest state, whatever a clock that was set back by
// less than a step shows.
func TestClockBehind(t *testing.T) {
	c := pasttest.NewCluster(t)
	st := c.Stream(pasttest.Pods, 100, 0)
	p := newPast(t, &pasttest.Record{History: c.Store})
	if err := st.Append(nil, 110, time.Now().Add(90*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{At: p.Present(), Ago: true}); err != nil || s.RV != 110 {
		t.Errorf("at %d, %v", s.RV, err)
	}
}

// TestLocateAfterStart: a time after the head is not known before the recorder, which has just
// been started, has written something: then it is in the late gap.
func TestLocateAfterStart(t *testing.T) {
	story, _ := pasttest.NewStory(t)
	p := newPast(t, story)
	head := story.Stream.Head()
	if _, err := story.History.Stream(pasttest.Pods); err != nil { // as a recorder does when it starts
		t.Fatal(err)
	}
	between := head.At.Add(time.Second)
	if s, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{At: head.At}); err != nil || s.RV != head.RV {
		t.Errorf("at the head: %v, %v", s, err)
	}
	if s, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{At: between}); !errors.Is(err, ErrUnrecorded) {
		t.Errorf("before anything is written: %v, %v", s, err)
	}
	done := make(chan error)
	go func() {
		_, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{At: between})
		done <- err
	}()
	if err := story.Stream.AppendLate(nil, head.RV, head.At, head.At.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, history.ErrGap) {
		t.Errorf("in the late gap: %v", err)
	}
}
