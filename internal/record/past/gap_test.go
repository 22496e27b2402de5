// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// newStory returns a past, and a timeline that continues it.
func newStory(t *testing.T) (*Past, *pasttest.Record, *timeline.Timeline) {
	t.Helper()
	record, list := pasttest.NewStory(t)
	live := timeline.New(timeline.Options{})
	live.Reset(list)
	return newPast(t, record), record, live
}

func apply(t *testing.T, live *timeline.Timeline, typ kube.EventType, o *scan.Object) {
	t.Helper()
	if err := live.Apply(scan.Frame{Type: typ, Object: o}); err != nil {
		t.Fatal(err)
	}
	live.Flush()
}

// TestFutureInGap: a watch from a future RV ends if the RV is later found to be inside a
// gap, whether the timeline or the history has the gap first.
func TestFutureInGap(t *testing.T) {
	for _, order := range []string{"timeline history", "history timeline", "history", "late history timeline"} {
		t.Run(order, func(t *testing.T) {
			p, h, live := newStory(t)
			first := live
			if strings.HasPrefix(order, "late") { // the timeline has no view yet
				live = timeline.New(timeline.Options{})
			}
			c := &Source{past: p, id: pasttest.Pods, live: live, stream: h.Stream, rv: 105, ahead: true}
			defer c.Close()
			if batch, err := c.Next(); err != nil || len(batch.Events) > 0 {
				t.Fatal(batch, err)
			}
			changed := pasttest.Pod("d", "a", 103)
			for _, what := range strings.Fields(order) {
				switch what {
				case "late":
					live.Reset(pasttest.List(100, slices.Collect(first.View().All("", ""))...))
				case "timeline":
					live.Reset(pasttest.List(110, changed))
				case "history":
					if err := h.Stream.AppendGap([]history.Event{{Type: kube.Modified, Object: changed, Inferred: true}}, 110, pasttest.TimeOf(110)); err != nil {
						t.Fatal(err)
					}
					if order == "history" { // as if the watch had fallen back
						c.cursor, c.ahead = nil, true
						c.stream, c.live = h.Stream, nil
					}
				}
			}
			for range 100 {
				batch, err := c.Next()
				if _, gone := errors.AsType[status.ExpiredError](err); gone || errors.Is(err, timeline.ErrCompacted) {
					return
				}
				if err != nil || len(batch.Events) > 0 {
					t.Fatal(batch, err)
				}
				ready(t, c, batch)
			}
			t.Fatal("the watch does not end")
		})
	}
}

// ready waits until a source may have more.
func ready(t *testing.T, c *Source, b timeline.Batch) {
	t.Helper()
	if b.More {
		return
	}
	select {
	case <-c.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("no more events, and no end")
	}
}

// TestThroughGap: a watch that reads a gap from the history reads all of it there, even
// if the timeline has no gap: the timeline has the deletions at other RVs.
func TestThroughGap(t *testing.T) {
	p, h, live := newStory(t)
	gone := pasttest.Pod("e", "c", 102)
	big := pasttest.Pod("d", "a", 103, "pad", strings.Repeat("x", batchBytes))
	apply(t, live, kube.Deleted, gone)
	apply(t, live, kube.Modified, big)
	if err := h.Stream.AppendGap([]history.Event{
		{Type: kube.Modified, Object: big, Inferred: true},
		{Type: kube.Deleted, Object: gone.At(110), Inferred: true},
	}, 110, pasttest.TimeOf(110)); err != nil {
		t.Fatal(err)
	}
	apply(t, live, kube.Added, pasttest.Pod("d", "d", 111))
	h.Append(t, history.Event{Type: kube.Added, Object: pasttest.Pod("d", "d", 111)})
	c := &Source{past: p, id: pasttest.Pods, live: live, stream: h.Stream, rv: 50, printed: true}
	defer c.Close()
	var got []string
	for batch := (timeline.Batch{More: true}); c.RV() < 111; {
		ready(t, c, batch)
		var err error
		if batch, err = c.Next(); err != nil {
			t.Fatal(err)
		}
		c.printed = false // now the watch may continue in the timeline
		for _, e := range batch.Events {
			got = append(got, fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key.Name(), e.RV))
		}
	}
	if got, want := strings.Join(got, ", "), "MODIFIED a@60, MODIFIED a@103, DELETED c@110, ADDED d@111"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFallsBack: a watch that lags behind the window continues in the history, and ends
// with 410 if the history does not have its position.
func TestFallsBack(t *testing.T) {
	for name, test := range map[string]struct {
		recorded bool
		then     func(*timeline.Timeline)
		want     string
	}{
		"recorded":             {recorded: true, want: "a@101 a@102 a@103 a@104"},
		"not recorded in time": {want: "expired at 100"},
		"another history":      {recorded: true, then: func(live *timeline.Timeline) { live.Reset(pasttest.List(90)) }, want: "expired at 100"},
	} {
		t.Run(name, func(t *testing.T) {
			record, _ := pasttest.NewStory(t)
			p := newPast(t, record)
			live := timeline.New(timeline.Options{WindowBytes: 1})
			live.Reset(pasttest.List(100, pasttest.Pod("d", "a", 60)))
			v := live.View()
			cursor, err := live.WatchFrom(v, 100, timeline.Interest{})
			if err != nil {
				t.Fatal(err)
			}
			s := p.Follow(pasttest.Pods, live, v, cursor, timeline.Interest{})
			defer s.Close()
			for rv := uint64(101); rv < 105; rv++ {
				o := pasttest.Pod("d", "a", rv)
				apply(t, live, kube.Modified, o)
				if test.recorded {
					record.Append(t, history.Event{Type: kube.Modified, Object: o})
				}
			}
			if test.then != nil {
				test.then(live)
			}
			var got []string
			for s.RV() < 104 {
				batch, err := s.Next()
				if _, expired := errors.AsType[status.ExpiredError](err); expired || errors.Is(err, timeline.ErrCompacted) {
					got = append(got, fmt.Sprint("expired at ", s.RV()))
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range batch.Events {
					got = append(got, fmt.Sprintf("%s@%d", e.Object.Key.Name(), e.RV))
				}
				if !batch.More {
					<-s.Ready()
				}
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestOtherEpoch: a timeline that has begun again is not joined to what is recorded of
// the history before, though it has the same RVs, or higher ones: neither a watch from an
// RV of before, nor an exact list, nor a watch of the past that reaches the present, nor a
// watch that lags.
func TestOtherEpoch(t *testing.T) {
	for _, rv := range []uint64{100, 1_000_000_000} {
		p, record, live := newStory(t)
		live.Reset(pasttest.List(rv, pasttest.Pod("d", "other", 15)))
		v := live.View()
		if s, err := p.Resume(t.Context(), pasttest.Pods, live, v, 20, timeline.Interest{}); s != nil || err != nil {
			t.Errorf("%d: a watch from 20: %v, %v", rv, s, err)
		}
		if st, err := p.Holding(t.Context(), pasttest.Pods, live, v, 20); st != nil || err != nil {
			t.Errorf("%d: a list at 20: %v, %v", rv, st, err)
		}

		m, err := p.Locate(t.Context(), pasttest.Pods, kube.Moment{RV: 40})
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Watch(pasttest.Pods, m, WatchOptions{})
		if err == nil {
			err = s.Join(live)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for err == nil {
			var batch timeline.Batch
			batch, err = s.Next()
			for _, e := range batch.Events {
				got = append(got, fmt.Sprintf("%s@%d", e.Object.Key.Name(), e.RV))
			}
			if err == nil {
				ready(t, s, batch)
			}
		}
		if _, gone := errors.AsType[status.ExpiredError](err); !gone || strings.Join(got, " ") != "a@60" {
			t.Errorf("%d: a watch of the past: %q, %v", rv, got, err)
		}
		s.Close()

		cursor, err := live.WatchFrom(v, rv, timeline.Interest{})
		if err != nil {
			t.Fatal(err)
		}
		s = p.Follow(pasttest.Pods, live, v, cursor, timeline.Interest{})
		if s.fallBack() {
			t.Errorf("%d: a watch fell back to the old history", rv)
		}
		record.Epoch = v.Epoch() // as when the record has begun again, too
		if rv == 100 && !s.fallBack() {
			t.Error("a watch does not fall back to its own history")
		}
		s.Close()
	}
}
