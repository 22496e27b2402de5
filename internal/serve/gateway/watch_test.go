// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

func (b *bench) watch(query string) (<-chan string, func()) {
	b.t.Helper()
	return b.watchAt("/api/v1/pods?watch=1&" + query)
}

// watchAt opens a watch and returns its lines; the channel is closed at its end.
func (b *bench) watchAt(path string, headers ...string) (<-chan string, func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	resp := b.open(ctx, path, headers...)
	if resp.StatusCode != 200 {
		body, _ := io.ReadAll(resp.Body)
		b.t.Fatalf("watch %s: %s %s", path, resp.Status, body)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines, cancel
}

func brief(t *testing.T, line string) string {
	t.Helper()
	var f struct {
		Type   string
		Object metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	s := f.Type + " " + f.Object.Name + "@" + f.Object.ResourceVersion
	if f.Object.Annotations["k8s.io/initial-events-end"] == "true" {
		s += " end"
	}
	if f.Object.Annotations["watchkeeper/live"] == "true" {
		s += " live"
	}
	return s
}

func expect(t *testing.T, lines <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("the stream ended before %q", w)
			}
			if got := brief(t, line); got != w {
				t.Fatalf("got %q, want %q", got, w)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing, want %q", w)
		}
	}
}

func expectEnd(t *testing.T, lines <-chan string) {
	t.Helper()
	select {
	case line, ok := <-lines:
		if ok {
			t.Fatalf("got %q, want the end", line)
		}
	case <-time.After(time.Minute):
		t.Fatal("the stream does not end")
	}
}

func TestWatch(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "b", 4), pod("d", "a", 5)))
	b.apply(kube.Modified, pod("d", "a", 12))
	streaming, stop1 := b.watch("resourceVersion=0&allowWatchBookmarks=true")
	defer stop1()
	expect(t, streaming, "ADDED a@12", "ADDED b@4", "BOOKMARK @12 end")
	plain, stop2 := b.watch("resourceVersion=0")
	defer stop2()
	expect(t, plain, "ADDED a@12", "ADDED b@4")
	resumed, stop3 := b.watch("resourceVersion=10")
	defer stop3()
	expect(t, resumed, "MODIFIED a@12")
	quiet, stop4 := b.watch("resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	defer stop4()
	future, stop5 := b.watch("resourceVersion=13")
	defer stop5()
	b.apply(kube.Added, pod("d", "c", 13))
	b.apply(kube.Deleted, pod("d", "b", 14))
	expect(t, streaming, "ADDED c@13", "DELETED b@14")
	expect(t, plain, "ADDED c@13", "DELETED b@14")
	expect(t, resumed, "ADDED c@13", "DELETED b@14")
	expect(t, quiet, "ADDED c@13", "DELETED b@14")
	expect(t, future, "DELETED b@14")

	b.get("/api/v1/pods?watch=1&resourceVersion=9&timeoutSeconds=3600")
	if q := <-b.missed; !strings.Contains(q, "timeoutSeconds=10") {
		t.Errorf("an RV older than the window is passed through with %s", q)
	}
	b.res.Timeline.Close()
	expectEnd(t, streaming)
}

func TestWatchSelector(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5, "color", "red"), pod("d", "b", 6, "color", "blue")))
	red, stop := b.watch("resourceVersion=0&allowWatchBookmarks=true&labelSelector=color%3Dred")
	defer stop()
	expect(t, red, "ADDED a@5", "BOOKMARK @10 end")
	b.apply(kube.Modified, pod("d", "a", 11, "color", "blue")) // leaves: DELETED with the previous state, at the new RV
	b.apply(kube.Modified, pod("d", "b", 12, "color", "red"))  // enters
	b.apply(kube.Modified, pod("d", "a", 13, "color", "blue")) // not selected
	b.apply(kube.Modified, pod("d", "b", 14, "color", "red"))
	b.apply(kube.Deleted, pod("d", "a", 15, "color", "blue")) // not selected
	b.apply(kube.Deleted, pod("d", "b", 16, "color", "red"))
	line := <-red
	if got, want := line, `{"type":"DELETED","object":`+pod("d", "a", 11, "color", "red").JSON+`}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	expect(t, red, "ADDED b@12", "MODIFIED b@14", "DELETED b@16")
}

func TestWatchEndsInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAPI, g *Gateway, client *http.Client) {
		before := podsOf(t, g).Timeline.View().RV
		rv := f.write("d", "a", 10)
		synctest.Wait() // the gateway has received it
		start := time.Now()
		body := read200(t, client, fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d&allowWatchBookmarks=true&timeoutSeconds=3", before))
		var got []string
		for line := range strings.Lines(body) {
			got = append(got, brief(t, line))
		}
		if want := []string{fmt.Sprintf("ADDED a@%d", rv), fmt.Sprintf("BOOKMARK @%d", rv)}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestWatchExpires(t *testing.T) {
	b := newBench(t, podList(10))
	lines, stop := b.watch("resourceVersion=10")
	defer stop()
	b.res.Timeline.Reset(podList(5))
	line := <-lines
	if !strings.HasPrefix(line, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 10 (5)","reason":"Expired","code":410}}`) {
		t.Errorf("got %s", line)
	}
	expectEnd(t, lines)
}

// TestWatchInsideGap: a client whose RV is inside a gap cannot resume: it would miss
// deletions.
func TestWatchInsideGap(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5), pod("d", "b", 6)))
	b.res.Timeline.Replace(podList(20))
	lines, stop := b.watch("resourceVersion=11")
	defer stop()
	if line := <-lines; !strings.Contains(line, `"message":"too old resource version: 11 (20)","reason":"Expired","code":410`) {
		t.Errorf("got %s", line)
	}
	expectEnd(t, lines)
	end, stop := b.watch("resourceVersion=20&timeoutSeconds=1")
	defer stop()
	expectEnd(t, end)
}

func TestDrain(t *testing.T) {
	b := newBench(t, podList(10))
	b.apply(kube.Added, pod("d", "a", 11))
	asked, _ := b.watch("resourceVersion=10&allowWatchBookmarks=true")
	plain, _ := b.watch("resourceVersion=10")
	expect(t, asked, "ADDED a@11")
	expect(t, plain, "ADDED a@11")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	deadline, _ := ctx.Deadline()
	b.reads.tracker.Drain(time.Until(deadline) / 1000)
	expect(t, asked, "BOOKMARK @11")
	expectEnd(t, asked)
	expectEnd(t, plain)
	if code, _ := b.get("/api/v1/pods?watch=1&resourceVersion=10"); code != http.StatusTeapot {
		t.Errorf("a new watch is served while draining: %d", code)
	}
}
