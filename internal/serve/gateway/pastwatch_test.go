// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
)

// TestPastWatch: a watch begins at any recorded RV or moment, and then goes live.
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
		query + "&resourceVersion=10&speed=10000":                     followed[:4], // live a few seconds later
		// At a moment.
		at(35) + query + "&resourceVersion=30":       followed[2:],
		at(35) + query + "&resourceVersion=12":       followed,     // before the moment
		at(35) + query + "&resourceVersion=40":       followed[3:], // after the moment
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
			if strings.HasPrefix(path, "/at/") && strings.Contains(path, "allowWatchBookmarks") {
				expect(t, lines, "BOOKMARK @105 live")
			}
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
		t.Errorf("an RV before the history is passed through with %s", q)
	}
}

// TestPastWatchTimes: with times, a bookmark after each event has the time at which the
// event was observed; the events have the same bytes as without.
func TestPastWatchTimes(t *testing.T) {
	const query = "/api/v1/pods?watch=1&resourceVersion=10&allowWatchBookmarks=true&labelSelector=color%3Dblue"
	b, _ := newPastBench(t)
	plain, stop := b.watchAt(query)
	defer stop()
	lines, stop := b.watchAt(query + "&times=true")
	defer stop()
	moment := func() time.Time {
		t.Helper()
		line := <-lines
		var e struct {
			Object struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, e.Object.Metadata.Annotations["watchkeeper/moment"])
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		return at
	}
	for _, rv := range []uint64{20, 30, 60} {
		if line, want := <-lines, <-plain; line != want {
			t.Errorf("got %s, want %s", line, want)
		}
		if at := moment(); !at.Equal(pasttest.TimeOf(rv)) {
			t.Errorf("%d was observed at %v, not at %v", rv, at, pasttest.TimeOf(rv))
		}
	}
	expect(t, lines, "BOOKMARK @100 live")
	blue := pod("d", "z", 107, "color", "blue")
	before := time.Now()
	b.apply(kube.Added, pod("d", "other", 106))
	b.apply(kube.Added, blue)
	expect(t, lines, "ADDED z@107")
	if at := moment(); at.Before(before) || at.After(time.Now()) {
		t.Errorf("a live event was observed at %v, not after %v", at, before)
	}
}

// TestPastWatchTimesRefused: times that cannot be sent are an error.
func TestPastWatchTimesRefused(t *testing.T) {
	b, _ := newPastBench(t)
	for path, want := range map[string]string{
		at(35) + "/api/v1/pods?watch=1&times=true":                             "add allowWatchBookmarks=true",
		at(35) + "/api/v1/pods?watch=1&times=yes&allowWatchBookmarks=true":     `times: \"yes\" is neither true nor false`,
		at(35) + "/api/v1/pods?times=true":                                     "times: only a watch has events",
		"/api/v1/pods?watch=1&resourceVersion=20&times=true":                   "add allowWatchBookmarks=true",
		"/api/v1/pods?watch=1&resourceVersion=9&allowWatchBookmarks=1&times=1": "times: pods are not watched by the gateway now: try again, or leave times out",
	} {
		if code, body := b.get(path); code != http.StatusBadRequest && code != http.StatusServiceUnavailable || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// TestPastWatchInGap: a watch from an RV inside a recorded gap expires.
func TestPastWatchInGap(t *testing.T) {
	b, _ := newPastBench(t)
	lines, stop := b.watch("resourceVersion=55")
	defer stop()
	if line := <-lines; !strings.Contains(line, `"code":410`) || !strings.Contains(line, "between 50 (") {
		t.Errorf("got %s", line)
	}
	expectEnd(t, lines)
}

// TestPastWebSocket: a watch of the past also works over a WebSocket.
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

// TestReplay: a replay sends each event in order, reports its current moment in
// bookmarks, and goes live when it has caught up.
func TestReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	t.Parallel()
	h := pasttest.New(t, podList(10, pod("d", "a", 4)))
	h.Append(t, history.Event{Type: kube.Modified, Object: pod("d", "a", 20)}, history.Event{Type: kube.Modified, Object: pod("d", "a", 20_000)})
	if err := h.Stream.Append(nil, 86_000, pasttest.TimeOf(86_000)); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, podList(86_000, pod("d", "a", 20_000)))
	b.remember(h)
	// A day in 8.6 seconds.
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
		at, err := time.Parse(time.RFC3339Nano, meta.Annotations["watchkeeper/moment"])
		if err != nil || !at.After(last) || at.After(time.Now()) {
			t.Fatalf("after one at %v: %s", last, line)
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
	until(t, "a cursor in the timeline", func() bool { return b.res.Timeline.View().RV == 86_000 })
	b.apply(kube.Modified, pod("d", "a", 86_001))
	for line := range lines {
		if got := brief(t, line); !strings.HasPrefix(got, "BOOKMARK") {
			if got != "MODIFIED a@86001" {
				t.Errorf("got %s", got)
			}
			return
		}
	}
	t.Error("the replay does not go live")
}

// TestPastEpochs: when RVs have gone backwards, a new epoch begins.
func TestPastEpochs(t *testing.T) {
	h := pasttest.New(t, podList(10, pod("d", "a", 4)))
	h.Append(t, history.Event{Type: kube.Modified, Object: pod("d", "a", 50)})
	old := h.Stream
	var err error
	if h.Stream, err = h.History.NewEpoch(pods); err != nil {
		t.Fatal(err)
	}
	restored := podList(30, pod("d", "a", 4))
	form := history.Form{ListKind: restored.Kind, Item: restored.EmptyItem()}
	later := pasttest.TimeOf(100)
	if err = h.Stream.Begin(form, slices.Values(restored.Items), 30, later); err == nil {
		err = h.Stream.Append([]history.Event{{Type: kube.Modified, Object: pod("d", "a", 40), At: later.Add(time.Second)}}, 45, later.Add(time.Second))
	}
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, podList(45, pod("d", "a", 40)))
	b.remember(h)
	for path, want := range map[string]string{
		at(20) + "/api/v1/pods": "10 d/a@4",
		at(50) + "/api/v1/pods": "50 d/a@50",
		"/at/rv:20/api/v1/pods": "20 d/a@4", // the old epoch's: the new one begins at 30
		"/at/rv:35/api/v1/pods": "35 d/a@4",
		"/at/rv:45/api/v1/pods": "45 d/a@40",
		"/at/10m/api/v1/pods":   "45 d/a@40",
		"/api/v1/pods?resourceVersion=30&resourceVersionMatch=Exact": "30 d/a@4",
	} {
		if code, body := b.get(path); code != http.StatusOK || briefList(t, body) != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for path, want := range map[string]string{
		at(70) + "/api/v1/pods": "in a gap of the recorded history: *; pods were not observed between 50 (*) and 30 (*",
		at(5) + "/api/v1/pods":  "before the recorded history: *; pods are recorded from 10 (*",
		"/at/rv:5/api/v1/pods":  "before the recorded history: 5; pods are recorded from 10 (*",
	} {
		code, body := b.get(path)
		if got := statusOfBody(t, body).Message; code != http.StatusGone || !matches(got, want) {
			t.Errorf("%s: %d %s, want %s", path, code, got, want)
		}
	}
	// A watch that begins in the old epoch ends with it.
	lines, stop := b.watchAt(at(10) + "/api/v1/pods?watch=1&resourceVersion=10")
	defer stop()
	expect(t, lines, "MODIFIED a@50")
	if line := <-lines; !strings.Contains(line, `"code":410`) || !strings.Contains(line, "begins again") {
		t.Errorf("got %s", line)
	}
	expectEnd(t, lines)
	if old.Head().RV != 50 {
		t.Error("the old epoch was written")
	}
}

// TestPastWatchOfCaller: a caller with credentials may watch from a moment if the API
// server allows it this watch now. The watch then goes live from the cache, until its
// timeout, as one of the API server's does. On the ordinary paths such a caller gets
// nothing from the cache (T8).
func TestPastWatchOfCaller(t *testing.T) {
	const all, inE = "/api/v1/pods?watch=1&resourceVersion=40", "/api/v1/namespaces/e/pods?watch=1&resourceVersion=40"
	for _, test := range []struct {
		path, may string
		want      []string // nil if the watch is refused
	}{
		{"/at/now" + all, "watch *", []string{"MODIFIED a@60", "MODIFIED c@105"}},
		{at(45) + all, "watch *", []string{"MODIFIED a@60", "MODIFIED c@105"}},
		{"/at/now" + inE, "watch e", []string{"MODIFIED c@105"}},
		{"/at/now" + all, "watch e", nil},
		{"/at/now" + inE, "watch d", nil},
		{"/at/now" + all, "list *", nil},
	} {
		b, _ := newPastBench(t)
		caller := []string{"Authorization", "Bearer " + test.may}
		if test.want == nil {
			if code, body := b.get(test.path, caller...); code != http.StatusForbidden {
				t.Errorf("%s for %q: %d %s", test.path, test.may, code, body)
			}
			continue
		}
		lines, stop := b.watchAt(test.path, caller...)
		b.apply(kube.Modified, pod("e", "c", 105))
		expect(t, lines, test.want...)
		b.mute.Store(true) // the API server is not asked again
		b.apply(kube.Deleted, pod("e", "c", 106))
		expect(t, lines, "DELETED c@106")
		stop()
		if code, _ := b.get(all, caller...); code != http.StatusTeapot {
			t.Errorf("on the ordinary path: %d", code)
		}
	}
}
