// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// TestUnreadable: what an API server answers for ten minutes ends Run after RefusalGrace
// only if it says that it cannot read the collection, and if it is ready: in an outage of
// all collections, the sink's state is served.
func TestUnreadable(t *testing.T) {
	initializing := strings.Replace(script.Status(429), `"no"`, `"storage is (re)initializing"`, 1)
	for _, test := range []struct {
		name  string
		code  int
		body  string
		ready time.Duration // after the start; negative before it
		ends  time.Duration // at the earliest; 0 never
	}{
		{name: "an object cannot be converted", code: 500, body: script.Status(500), ends: 30 * time.Second},
		{name: "no list for the API server's cache", code: 429, body: initializing, ends: 30 * time.Second},
		{name: "another 429", code: 429, body: script.Status(429)},
		{name: "priority and fairness", code: 429, body: "Too many requests, please try again later.\n"},
		{name: "a proxy", code: 500, body: "<html>storage is (re)initializing"},
		{name: "etcd is slow", code: 504, body: script.Status(504)},
		{name: "no server", code: 503, body: script.Status(503)},
		{name: "not ready", code: 500, body: script.Status(500), ready: time.Hour},
		{name: "ready later", code: 429, body: initializing, ends: 3*time.Minute + 30*time.Second, ready: 3 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := runReady(t, start.Add(cmp.Or(test.ready, -time.Hour)),
					script.Probe, script.Synced, script.Answer{Want: script.From(10), Code: test.code, Body: test.body},
					script.Answer{Code: test.code, Body: test.body, Again: true})
				refused, ok := errors.AsType[*RefusedError](err)
				took := time.Since(start)
				switch {
				case test.ends == 0 && err != nil:
					t.Errorf("ended after %v: %v", took, err)
				case test.ends > 0 && (!ok || refused.Code != test.code || took < test.ends || took > test.ends+10*time.Second):
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
	t.Run("a stream in between", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			bad := script.Answer{Want: script.From(10), Code: 500, Body: script.Status(500)}
			err := runReady(t, time.Now().Add(-time.Hour),
				script.Probe, script.Synced, bad, script.At(10), script.Answer{Want: script.From(10), Lasts: 5 * time.Minute},
				bad, script.At(10), script.Answer{Want: script.From(10), Stall: true})
			if err != nil {
				t.Error(err)
			}
		})
	})
}

// TestUnreadableInARow: watches that end in order between the answers say that the collection can
// be read.
func TestUnreadableInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []script.Answer{script.Probe, script.Synced}
		for range 5 {
			answers = append(answers, script.Answer{Want: script.From(10), Code: 500, Body: script.Status(500)},
				script.At(10), script.Answer{Want: script.From(10), Lasts: 9 * time.Second}, script.At(10))
		}
		answers = append(answers, script.Answer{Want: script.From(10), Stall: true})
		if err := runReady(t, time.Now().Add(-time.Hour), answers...); err != nil {
			t.Error(err)
		}
	})
}

// runReady is run with an API server that is ready from a time on, for ten minutes.
func runReady(t *testing.T, from time.Time, answers ...script.Answer) error {
	t.Helper()
	ready := func(context.Context) time.Time {
		if time.Now().Before(from) {
			return time.Time{}
		}
		return from
	}
	u, _ := url.Parse("http://upstream/api/v1/pods")
	up := &script.Upstream{T: t, Answers: answers}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	return New(Objects(false), &recordingSink{}, Options{Transport: up, URL: u, Ready: ready}).Run(ctx)
}
