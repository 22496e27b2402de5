// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// TestWatchHTTP2: a watch over HTTP/2, of net/http and of package h2. Cut ends it cleanly,
// and abort ends a watch whose client does not read.
func TestWatchHTTP2(t *testing.T) {
	t.Run("standard", func(t *testing.T) { testWatchHTTP2(t, func(*http.Server) {}) })
	t.Run("own", func(t *testing.T) { testWatchHTTP2(t, h2.Configure) })
}

func testWatchHTTP2(t *testing.T, configure func(*http.Server)) {
	tl := timeline.New(timeline.Options{})
	tl.Reset(pasttest.List(10, pasttest.Pod("d", "a", 5)))
	tracker := NewTracker(slog.New(slog.DiscardHandler), prometheus.NewHistogram(prometheus.HistogramOpts{}))
	watches := make(chan *Watch, 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := newWatch(t, tl, 10)
		watches <- s
		tracker.Serve(w, r, s)
	}))
	modify := func(rv uint64, filling string) {
		if err := tl.Apply(scan.Frame{Type: kube.Modified, Object: pasttest.Pod("d", "a", rv, "filling", filling)}); err != nil {
			t.Fatal(err)
		}
		tl.Flush()
	}
	server.EnableHTTP2 = true
	configure(server.Config)
	server.StartTLS()
	defer server.Close()
	open := func() *bufio.Reader {
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.ProtoMajor != 2 {
			t.Fatal(resp.Proto)
		}
		return bufio.NewReader(resp.Body)
	}
	lines := open()
	<-watches
	filling := strings.Repeat("x", 100<<10)
	rv := uint64(10)
	for range 5 {
		rv++
		modify(rv, filling)
		want := `{"type":"MODIFIED","object":` + pasttest.Pod("d", "a", rv, "filling", filling).JSON + "}\n"
		if got, err := lines.ReadString('\n'); err != nil || got != want {
			t.Fatalf("%.200s, %v", got, err)
		}
	}
	stuck := open()
	waiting := <-watches
	for range 50 { // more than the client's window
		rv++
		modify(rv, filling)
	}
	for i := range uint64(50) {
		if got, err := lines.ReadString('\n'); err != nil || !strings.Contains(got[:200], fmt.Sprintf(`"resourceVersion":"%d"`, 16+i)) {
			t.Fatalf("%.200s, %v", got, err)
		}
	}
	until(t, "a stream that is stuck", func() bool { return waiting.timer.since.Load() != 0 })
	waiting.timer.out.abort()
	if _, err := io.ReadAll(stuck); err == nil {
		t.Error("the aborted stream has a clean end")
	}
	until(t, "its end", func() bool { return tracker.Active() == 1 })
	tracker.Cut()
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("%.200q, %v", rest, err)
	}
	<-tracker.Idle()
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timeout waiting for " + what)
		}
	}
}
