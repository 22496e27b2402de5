// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestPastUndecided: nothing of the past is told to somebody of whom the API server
// has not said what they may read (T8).
func TestPastUndecided(t *testing.T) {
	b, _ := newPastBench(t)
	check := func(when, path string, code int, headers ...string) {
		t.Helper()
		resp := b.open(t.Context(), path, headers...)
		defer resp.Body.Close()
		if resp.StatusCode != code || code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %s: %s, Retry-After %q", when, path, resp.Status, resp.Header.Get("Retry-After"))
		}
	}
	const list, get = "/api/v1/pods", "/api/v1/namespaces/d/pods/a"
	b.mute.Store(true)
	for _, path := range []string{list, list + "?watch=1", get} {
		check("nobody was ever asked", at(45)+path, http.StatusServiceUnavailable)
	}
	check("a caller", at(45)+list, http.StatusServiceUnavailable, "Authorization", "Bearer list *")

	// It is asked again at once, and not when it is away.
	b.mute.Store(false)
	check("the API server is back", at(45)+list, http.StatusOK)
	check("a caller", at(45)+list, http.StatusOK, "Authorization", "Bearer list *")
	b.mute.Store(true)
	check("it is away again", at(45)+list, http.StatusOK)
	check("who may list may get", at(45)+get, http.StatusOK)
	check("of a caller nothing is remembered", at(45)+list, http.StatusServiceUnavailable, "Authorization", "Bearer list *")
}

// TestPastWithheld: what is not to be told any more is not told on any path.
func TestPastWithheld(t *testing.T) {
	b, h := newPastBench(t)
	h.Withheld = "pods"
	for _, path := range []string{at(45) + "/api/v1/pods", at(45) + "/api/v1/pods?watch=1", at(45) + "/api/v1/namespaces/d/pods/a"} {
		if code, body := b.get(path); code != http.StatusForbidden || !strings.Contains(body, "--record-secrets") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=20", "/api/v1/pods?watch=1&resourceVersion=20"} {
		if code, body := b.get(path); code != http.StatusTeapot {
			t.Errorf("%s is not the API server's: %d %s", path, code, body)
		}
	}
}

// TestLearnsForLater: whether the gateway may list what is recorded is known before
// the API server goes away, without anybody having asked for it.
func TestLearnsForLater(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.write("ns", "a", 10)
	g, rec, _, stop := f.record(vfs.NewMem(), time.Minute)
	defer stop()
	until(t, "a record", func() bool { return rec.Sync(t.Context(), pods) == nil })
	until(t, "a decision", func() bool { return g.reads.access.Decided(pods) })
}
