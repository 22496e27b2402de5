// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package multiwatch

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// openOrRefused answers watches with none but an open stream, and refuses those of Secrets.
var openOrRefused = allowed(func(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/v1/secrets" {
		status.Write(w, r, status.New(http.StatusForbidden, "Forbidden", "not for you"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	<-r.Context().Done()
})

// TestStale: with upstream=1, a multiwatch gets one line at its begin, one when the upstream becomes
// unreachable, one for each new reason, and one when it is reachable again; none for a
// watch that has ended.
func TestStale(t *testing.T) {
	var mu sync.Mutex
	now := UpstreamState{Since: time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC), Message: "connection refused"}
	server := httptest.NewServer(&Handler{
		Answer: openOrRefused,
		Upstream: func(r *http.Request) UpstreamState {
			mu.Lock()
			defer mu.Unlock()
			if r.URL.Path == "/api/v1/pods" {
				return now
			}
			return UpstreamState{}
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	defer server.Close()

	resp, err := http.Get(multiwatchURL(server.URL, "/api/v1/nodes?watch=1", "/api/v1/pods?watch=1") + "&upstream=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != `{"watch":0,"type":"CURRENT"}` {
		t.Fatalf("the state of the first watch at its begin is %s", lines.Text())
	}
	const stale = `{"watch":1,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"connection refused"}}`
	for _, step := range []struct{ message, want string }{
		{"", stale},
		{"no route", `{"watch":1,"type":"CURRENT"}`},
		{"timeout", `{"watch":1,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"no route"}}`},
		{"", `{"watch":1,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"timeout"}}`},
	} {
		if !lines.Scan() || lines.Text() != step.want {
			t.Fatalf("got %s %v, want %s", lines.Text(), lines.Err(), step.want)
		}
		mu.Lock()
		now.Message = step.message
		mu.Unlock()
	}

	mu.Lock()
	now.Message = "connection refused"
	mu.Unlock()
	// A multiwatch without upstream=1 is not notified.
	for query, paths := range map[string][]string{"": {"/api/v1/pods?watch=1", "/api/v1/secrets?watch=1"}, "&upstream=1": {"/api/v1/nodes?watch=1", "/api/v1/secrets?watch=1"}} {
		resp, err := http.Get(multiwatchURL(server.URL, paths...) + query)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		wants := []string{"1 ERROR Status 403 not for you", "1 END"}
		if query != "" { // at the begin, also of a watch that ends at once
			wants = append([]string{"0 CURRENT @", "1 CURRENT @"}, wants...)
		}
		for _, want := range wants {
			if got := nextLine(t, lines); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		resp.Body.Close()
	}
}

// TestHeartbeat: with upstream=1, a line comes every ten seconds at least as long as a watch goes
// on, also if the first one has ended; without it, none.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := informertest.NewNetwork(&Handler{
			Answer:   openOrRefused,
			Upstream: func(*http.Request) UpstreamState { return UpstreamState{} },
			Logger:   slog.New(slog.DiscardHandler),
		})
		defer network.Close()
		for query, want := range map[string]int{"&upstream=1": 6, "": 0} {
			ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, multiwatchURL(network.URL().String(), "/api/v1/secrets?watch=1", "/api/v1/pods?watch=1")+query, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := network.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if seconds := resp.Header.Get(api.HeartbeatHeader); (seconds == "10") != (want > 0) {
				t.Errorf("the heartbeat is %q", seconds)
			}
			beats := 0
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if lines.Text() == `{"watch":1,"type":"CURRENT"}` {
					beats++
				}
			}
			if beats = max(beats-1, 0); beats != want { // one is at the begin
				t.Errorf("%q: %d heartbeats, want %d", query, beats, want)
			}
			resp.Body.Close()
			cancel()
		}
	})
}
