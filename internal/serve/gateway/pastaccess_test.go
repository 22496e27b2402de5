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

// TestPastUndecided: the gateway shows no past objects to a caller whose access the
// API server has not decided (T8).
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
		check("no decision yet", at(45)+path, http.StatusServiceUnavailable)
	}
	check("a caller", at(45)+list, http.StatusServiceUnavailable, "Authorization", "Bearer list *")

	// The next request asks again; a decision is kept while the API server is away.
	b.mute.Store(false)
	check("the API server answers", at(45)+list, http.StatusOK)
	check("a caller", at(45)+list, http.StatusOK, "Authorization", "Bearer list *")
	b.mute.Store(true)
	check("it is away again", at(45)+list, http.StatusOK)
	check("list access covers get", at(45)+get, http.StatusOK)
	check("a caller's decision is not kept", at(45)+list, http.StatusServiceUnavailable, "Authorization", "Bearer list *")
}

// TestPastWithheld: no path shows the recorded objects of a withheld resource.
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
			t.Errorf("%s is not passed through: %d %s", path, code, body)
		}
	}
}

// TestRecordedAccessReviewedEarly: the gateway reviews its own access to a recorded
// resource before any request needs the decision.
func TestRecordedAccessReviewedEarly(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.write("ns", "a", 10)
	g, rec, _, stop := f.record(vfs.NewMem(), time.Minute)
	defer stop()
	until(t, "a record", func() bool { return rec.Sync(t.Context(), pods) == nil })
	until(t, "a decision", func() bool { return g.reads.access.Decided(pods) })
}
