// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
)

// TestPastListsAtATime: a whole list above the limit of concurrent ones gets a 429, on
// all paths; pages do not count.
func TestPastListsAtATime(t *testing.T) {
	b, _ := newPastBench(t)
	b.reads.past.Lists = past.NewLimiter("list", 1, time.Millisecond)
	for range 1 {
		if _, err := b.reads.past.Lists.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{at(45) + "/api/v1/pods", "/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=20"} {
		resp := b.open(t.Context(), path)
		resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "5" {
			t.Errorf("%s: %s, Retry-After %q", path, resp.Status, resp.Header.Get("Retry-After"))
		}
	}
	if code, body := b.get(at(45) + "/api/v1/pods?limit=1000"); code != http.StatusOK {
		t.Errorf("a page: %d %s", code, body)
	}
}

// A deadlined is a ResponseWriter that notes the last deadline of a write.
type deadlined struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (d *deadlined) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		d.deadline = t
	}
	return nil
}

// TestPastListWriteTimeout: a list that holds a slot has a shorter write timeout.
func TestPastListWriteTimeout(t *testing.T) {
	b, _ := newPastBench(t)
	for path, want := range map[string]time.Duration{
		at(45) + "/api/v1/pods":         httpstream.HeldTimeout,
		at(45) + "/api/v1/pods?limit=9": httpstream.WriteTimeout,
	} {
		w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		before := time.Now()
		b.serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusOK || w.deadline.Before(before.Add(want)) || w.deadline.After(time.Now().Add(want)) {
			t.Errorf("%s: %d, a deadline of %v", path, w.Code, w.deadline.Sub(before))
		}
	}
}
