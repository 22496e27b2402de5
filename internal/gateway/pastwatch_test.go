// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// TestPastWatch: a watch begins anywhere in the past and goes on live.
func TestPastWatch(t *testing.T) {
	const query = "/api/v1/pods?watch=1&allowWatchBookmarks=true"
	followed := []string{"MODIFIED a@20", "DELETED b@30", "ADDED c@40", "MODIFIED a@60", "MODIFIED c@105"}
	tests := map[string][]string{
		// On the ordinary path, from an RV below the window.
		query + "&resourceVersion=10":                                 followed,
		query + "&resourceVersion=20":                                 followed[1:],
		query + "&resourceVersion=99":                                 followed[4:],
		query + "&resourceVersion=10&labelSelector=color%3Dblue":      {"ADDED a@20", "DELETED b@30", "DELETED a@60"},
		query + "&resourceVersion=10&fieldSelector=metadata.name%3Dc": {"ADDED c@40", "MODIFIED c@105"},
		"/api/v1/namespaces/e/pods?watch=1&resourceVersion=10":        {"ADDED c@40", "MODIFIED c@105"},
		"/api/v1/watch/namespaces/e/pods/c?resourceVersion=10":        {"ADDED c@40", "MODIFIED c@105"},
		query + "&resourceVersion=10&fields=metadata.labels.color":    {"MODIFIED a@20", "DELETED b@30", "ADDED c@40", "MODIFIED a@60", "MODIFIED c@105"},
		query + "&resourceVersion=10&speed=10000":                     followed[:4], // and live in some seconds
		// At a moment.
		at(35) + query + "&resourceVersion=30":       followed[2:],
		at(35) + query + "&resourceVersion=12":       followed,     // before it
		at(35) + query + "&resourceVersion=40":       followed[3:], // and after it
		at(35) + query + "&resourceVersion=105":      nil,
		at(35) + query + "&resourceVersion=0":        append([]string{"ADDED a@20", "BOOKMARK @30 end"}, followed[2:]...),
		at(35) + query:                               append([]string{"ADDED a@20", "BOOKMARK @30 end"}, followed[2:]...),
		at(10) + "/api/v1/watch/pods":                append([]string{"ADDED a@4", "ADDED b@5"}, followed...),
		at(35) + "/api/v1/namespaces/e/pods?watch=1": {"ADDED c@40", "MODIFIED c@105"},
		at(10) + query + "&labelSelector=color%3Dred&sendInitialEvents=true&resourceVersionMatch=NotOlderThan": {"ADDED a@4", "BOOKMARK @10 end", "DELETED a@20", "ADDED c@40", "DELETED c@105"},
		at(10) + query + "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan":                          followed,
	}
	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			b, _ := newPastBench(t)
			b.apply(kube.Modified, pod("e", "c", 105))
			lines, stop := b.watchAt(path)
			defer stop()
			expect(t, lines, want...)
			b.apply(kube.Deleted, pod("e", "c", 106))
			if !strings.Contains(path, "Selector=color") && !strings.Contains(path, "speed") {
				expect(t, lines, "DELETED c@106")
			}
			if len(b.missed) > 0 {
				t.Errorf("passed through: %s", <-b.missed)
			}
		})
	}
	b, _ := newPastBench(t)
	b.get("/api/v1/pods?watch=1&resourceVersion=9")
	if q := <-b.missed; !strings.Contains(q, "timeoutSeconds=10") {
		t.Errorf("an RV older than all is passed through with %s", q)
	}
}

// TestPastWatchInGap: no watch goes on from inside a gap, whoever knows of it.
func TestPastWatchInGap(t *testing.T) {
	b, _ := newPastBench(t)
	lines, stop := b.watch("resourceVersion=55")
	defer stop()
	if line := <-lines; !strings.Contains(line, `"code":410`) || !strings.Contains(line, "between 50 (") {
		t.Errorf("got %s", line)
	}
	expectEnd(t, lines)
}

// TestPastFutureInGap: what begins where the history has yet to come, and that
// turns out to be inside a gap, ends: whichever of the two that tell is first.
func TestPastFutureInGap(t *testing.T) {
	for _, order := range []string{"timeline history", "history timeline", "history", "late history timeline"} {
		t.Run(order, func(t *testing.T) {
			b, h := newPastBench(t)
			first := b.res.timeline
			if strings.HasPrefix(order, "late") { // it has no view yet
				b.res.timeline = timeline.New(timeline.Options{})
			}
			c := &pastCursor{past: b.cache.past, id: pods, live: b.res.timeline, stream: h.stream, rv: 105, early: true}
			defer c.Close()
			if batch, err := c.Next(); err != nil || len(batch.Events) > 0 {
				t.Fatal(batch, err)
			}
			changed := pod("d", "a", 103)
			for _, what := range strings.Fields(order) {
				switch what {
				case "late":
					b.res.timeline.Reset(podList(100, slices.Collect(first.View().All("", ""))...))
				case "timeline":
					b.res.timeline.Reset(podList(110, changed))
				case "history":
					if err := h.stream.AppendGap([]history.Event{{Type: kube.Modified, Object: changed, Inferred: true}}, 110, timeOfRV(110)); err != nil {
						t.Fatal(err)
					}
					if order == "history" { // as if it had fallen back
						c.cursor, c.early = nil, true
						c.stream, c.live = h.stream, nil
					}
				}
			}
			for range 100 {
				batch, err := c.Next()
				if _, gone := errors.AsType[goneError](err); gone || errors.Is(err, timeline.ErrCompacted) {
					return
				}
				if err != nil || len(batch.Events) > 0 {
					t.Fatal(batch, err)
				}
				ready(t, c, batch)
			}
			t.Fatal("it does not end")
		})
	}
}

// ready waits until a source may have more.
func ready(t *testing.T, c source, b timeline.Batch) {
	t.Helper()
	if b.More {
		return
	}
	select {
	case <-c.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for ever")
	}
}

// TestPastThroughGap: what reads its way through a gap of the history reads all of
// it there, even if the timeline has no gap: the deletions are elsewhere.
func TestPastThroughGap(t *testing.T) {
	b, h := newPastBench(t)
	gone := pod("e", "c", 102)
	big := pod("d", "a", 103, "pad", strings.Repeat("x", batchBytes))
	b.apply(kube.Deleted, gone)
	b.apply(kube.Modified, big)
	if err := h.stream.AppendGap([]history.Event{
		{Type: kube.Modified, Object: big, Inferred: true},
		{Type: kube.Deleted, Object: gone.At(110), Inferred: true},
	}, 110, timeOfRV(110)); err != nil {
		t.Fatal(err)
	}
	b.apply(kube.Added, pod("d", "d", 111))
	h.append(t, history.Event{Type: kube.Added, Object: pod("d", "d", 111)})
	c := &pastCursor{past: b.cache.past, id: pods, live: b.res.timeline, stream: h.stream, rv: 50, printed: true}
	defer c.Close()
	var got []string
	for batch := (timeline.Batch{More: true}); c.RV() < 111; {
		ready(t, c, batch)
		var err error
		if batch, err = c.Next(); err != nil {
			t.Fatal(err)
		}
		c.printed = false // the timeline's turn, if it has the place
		for _, e := range batch.Events {
			got = append(got, fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key.Name(), e.RV))
		}
	}
	if got, want := strings.Join(got, ", "), "MODIFIED a@60, MODIFIED a@103, DELETED c@110, ADDED d@111"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPastWebSocket: a watch of the past is one over a WebSocket, too.
func TestPastWebSocket(t *testing.T) {
	b, _ := newPastBench(t)
	url := "ws" + strings.TrimPrefix(b.server.URL, "http") + at(15) + "/api/v1/pods?watch=1&resourceVersion=20"
	ws, err := websocket.Dial(url, "", b.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for _, want := range []string{"DELETED b@30", "ADDED c@40", "MODIFIED a@60"} {
		var line string
		if err := websocket.Message.Receive(ws, &line); err != nil || brief(t, line) != want {
			t.Fatalf("%s, %v; want %s", line, err, want)
		}
	}
}

// TestReplay: a replay tells of each event in its order, and of the moment that it
// is at, and goes live when it has caught up.
func TestReplay(t *testing.T) {
	h := newHistory(t, podList(10, pod("d", "a", 4)))
	h.append(t, history.Event{Type: kube.Modified, Object: pod("d", "a", 20)}, history.Event{Type: kube.Modified, Object: pod("d", "a", 20_000)})
	if err := h.stream.Append(nil, 86_000, timeOfRV(86_000)); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, podList(86_000, pod("d", "a", 20_000)))
	b.remember(h)
	// A day in eight seconds and a half.
	lines, stop := b.watchAt(at(10) + "/api/v1/pods?watch=1&resourceVersion=10&allowWatchBookmarks=true&speed=10000")
	defer stop()
	expect(t, lines, "MODIFIED a@20")
	last, seen, bookmarks := time.Time{}, false, 0
	for line := range lines {
		var e struct {
			Type   string
			Object struct {
				Metadata struct {
					ResourceVersion string
					Annotations     map[string]string
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		meta := e.Object.Metadata
		rv, err := kube.ParseRV(meta.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != "BOOKMARK" {
			if seen || rv != 20_000 || bookmarks == 0 {
				t.Fatalf("after %d bookmarks: %s", bookmarks, line)
			}
			seen = true
			continue
		}
		bookmarks++
		at, err := time.Parse(time.RFC3339Nano, meta.Annotations[momentAnnotation])
		if err != nil || !at.After(last) || at.After(time.Now()) {
			t.Fatalf("behind one at %v: %s", last, line)
		}
		if last = at; (rv >= 20_000) != seen {
			t.Fatalf("T5: %s", line)
		}
		if rv == 86_000 {
			break
		}
	}
	if !seen {
		t.Fatal("the watch has ended")
	}
	until(t, "a cursor in the timeline", func() bool { return b.res.timeline.View().RV == 86_000 })
	b.apply(kube.Modified, pod("d", "a", 86_001))
	for line := range lines {
		if got := brief(t, line); !strings.HasPrefix(got, "BOOKMARK") {
			if got != "MODIFIED a@86001" {
				t.Errorf("got %s", got)
			}
			return
		}
	}
	t.Error("it does not go live")
}

// TestPastEpochs: RVs that went backwards are another history.
func TestPastEpochs(t *testing.T) {
	h := newHistory(t, podList(10, pod("d", "a", 4)))
	h.append(t, history.Event{Type: kube.Modified, Object: pod("d", "a", 50)})
	old := h.stream
	var err error
	if h.stream, err = h.store.NewEpoch(pods); err != nil {
		t.Fatal(err)
	}
	restored := podList(30, pod("d", "a", 4))
	form := history.Form{ListKind: restored.Kind, Item: restored.EmptyItem()}
	later := timeOfRV(100)
	if err = h.stream.Begin(form, slices.Values(restored.Items), 30, later); err == nil {
		err = h.stream.Append([]history.Event{{Type: kube.Modified, Object: pod("d", "a", 40), At: later.Add(time.Second)}}, 45, later.Add(time.Second))
	}
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, podList(45, pod("d", "a", 40)))
	b.remember(h)
	for path, want := range map[string]string{
		at(20) + "/api/v1/pods": "10 d/a@4",
		at(50) + "/api/v1/pods": "50 d/a@50",
		"/at/rv:20/api/v1/pods": "20 d/a@4", // the old one's: the new one begins at 30
		"/at/rv:35/api/v1/pods": "35 d/a@4",
		"/at/rv:45/api/v1/pods": "45 d/a@40",
		"/at/10m/api/v1/pods":   "45 d/a@40",
		"/api/v1/pods?resourceVersion=30&resourceVersionMatch=Exact": "30 d/a@4",
	} {
		if code, body := b.get(path); code != http.StatusOK || briefList(t, body) != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{at(70) + "/api/v1/pods", "/at/rv:5/api/v1/pods"} {
		if code, body := b.get(path); code != http.StatusGone {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	// One that begins in the old one ends with it.
	lines, stop := b.watchAt(at(10) + "/api/v1/pods?watch=1&resourceVersion=10")
	defer stop()
	expect(t, lines, "MODIFIED a@50")
	if line := <-lines; !strings.Contains(line, `"code":410`) || !strings.Contains(line, "began anew") {
		t.Errorf("got %s", line)
	}
	expectEnd(t, lines)
	if old.Head().RV != 50 {
		t.Error("the old history was written")
	}
}

// TestFallsBack: a watch that falls behind the window goes on in the history, and
// ends with 410 where that does not have its place.
func TestFallsBack(t *testing.T) {
	for name, test := range map[string]struct {
		record func(t *testing.T, h *fakeHistory, e history.Event)
		then   func(b *bench)
		want   string
	}{
		"recorded":             {record: func(t *testing.T, h *fakeHistory, e history.Event) { h.append(t, e) }, want: "a@101 a@102 a@103 a@104"},
		"not recorded in time": {want: "too old resource version: 100 (*)"},
		"another history": {
			record: func(t *testing.T, h *fakeHistory, e history.Event) { h.append(t, e) },
			then:   func(b *bench) { b.res.timeline.Reset(podList(90)) },
			want:   "too old resource version: 100 (90)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, h := newPastBench(t)
			b.res.timeline = timeline.New(timeline.Options{WindowBytes: 1})
			a := pod("d", "a", 60)
			b.res.timeline.Reset(podList(100, a))
			v := b.res.timeline.View()
			cursor, err := b.res.timeline.WatchFrom(v, 100, timeline.Interest{})
			if err != nil {
				t.Fatal(err)
			}
			s := &watchStream{res: b.res, cache: b.cache, source: b.cache.past.follow(b.res, v, cursor, timeline.Interest{})}
			defer s.source.Close()
			for rv := uint64(101); rv < 105; rv++ {
				o := pod("d", "a", rv)
				b.apply(kube.Modified, o)
				if test.record != nil {
					test.record(t, h, history.Event{Type: kube.Modified, Object: o})
				}
			}
			if test.then != nil {
				test.then(b)
			}
			var got []string
			for s.source.RV() < 104 {
				batch, err := s.source.Next()
				if err != nil {
					got = append(got, s.whyBroken(err))
					break
				}
				for _, e := range batch.Events {
					got = append(got, fmt.Sprintf("%s@%d", e.Object.Key.Name(), e.RV))
				}
				if !batch.More {
					<-s.source.Ready()
				}
			}
			if got := strings.Join(got, " "); !matches(got, test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
