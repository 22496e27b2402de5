// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// TestContacts: a multiwatch that asks for it is told when the upstream is out
// of reach, for each reason, and when it is back, each once, and of no watch that
// is over.
func TestContacts(t *testing.T) {
	var mu sync.Mutex
	now := contact{Since: time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC), Message: "nobody is there"}
	server := httptest.NewServer(&multiwatch{
		answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/v1/secrets" {
				writeStatus(w, r, newStatus(http.StatusForbidden, "Forbidden", "not for you"))
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			<-r.Context().Done()
		},
		contact: func(r *http.Request) contact {
			mu.Lock()
			defer mu.Unlock()
			if r.URL.Path == "/api/v1/pods" {
				return now
			}
			return contact{}
		},
		log: slog.New(slog.DiscardHandler),
	})
	defer server.Close()

	resp, err := http.Get(multiwatchURL(server.URL, "/api/v1/nodes?watch=1", "/api/v1/pods?watch=1") + "&upstream=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	const stale = `{"watch":1,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"nobody is there"}}`
	for _, step := range []struct{ message, want string }{
		{"", stale},
		{"nobody again", `{"watch":1,"type":"CURRENT"}`},
		{"nobody at all", `{"watch":1,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"nobody again"}}`},
		{"", `{"watch":1,"type":"STALE","object":{"since":"2026-01-31T15:04:05Z","message":"nobody at all"}}`},
	} {
		if !lines.Scan() || lines.Text() != step.want {
			t.Fatalf("got %s %v, want %s", lines.Text(), lines.Err(), step.want)
		}
		mu.Lock()
		now.Message = step.message
		mu.Unlock()
	}

	mu.Lock()
	now.Message = "nobody is there"
	mu.Unlock()
	// One that did not ask is told nothing, and of one that is over there is nothing to tell.
	for query, paths := range map[string][]string{"": {"/api/v1/pods?watch=1", "/api/v1/secrets?watch=1"}, "&upstream=1": {"/api/v1/nodes?watch=1", "/api/v1/secrets?watch=1"}} {
		resp, err := http.Get(multiwatchURL(server.URL, paths...) + query)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for _, want := range []string{"1 ERROR Status 403 not for you", "1 END"} {
			if got := nextLine(t, lines); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		resp.Body.Close()
	}
}
