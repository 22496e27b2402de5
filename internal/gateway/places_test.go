// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestPlaces: who finds no place waits for one, and not for ever.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces("list", 2, 10*time.Second)
		first, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.take(t.Context()); !errors.Is(err, errBusy) || p.turnedAway.Load() != 1 {
			t.Errorf("a third place: %v", err)
		}
		go func() {
			time.Sleep(time.Second)
			first()
		}()
		if _, err := p.take(t.Context()); err != nil {
			t.Errorf("a place that becomes free: %v", err)
		}
	})
}

// TestPastListsAtATime: where other whole lists are being answered, the client is
// told to come again, on all paths; pages are not counted.
func TestPastListsAtATime(t *testing.T) {
	b, _ := newPastBench(t)
	b.cache.lists.wait = time.Millisecond
	for range mostReads {
		if _, err := b.cache.lists.take(t.Context()); err != nil {
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

// TestPastListIsRead: the client of a list that others wait for has less time to
// read it.
func TestPastListIsRead(t *testing.T) {
	b, _ := newPastBench(t)
	for path, want := range map[string]time.Duration{
		at(45) + "/api/v1/pods":         heldTimeout,
		at(45) + "/api/v1/pods?limit=9": WriteTimeout,
	} {
		w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		before := time.Now()
		b.serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusOK || w.deadline.Before(before.Add(want)) || w.deadline.After(time.Now().Add(want)) {
			t.Errorf("%s: %d, a deadline of %v", path, w.Code, w.deadline.Sub(before))
		}
	}
}
