// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestUnauthorizedRetry: when the gateway's credentials are accepted again, it is not long until
// the resource is recorded again.
func TestUnauthorizedRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI(t)
		r := api.recorder(t, vfs.NewMem())
		r.retry, r.retryRefused = 15*time.Second, 5*time.Minute
		r.listenEvery, r.trimEvery, r.rediscover = time.Second, time.Minute, time.Minute
		api.change(func() { api.refuse = http.StatusUnauthorized })
		g := api.run(t, r)
		time.Sleep(time.Minute)
		if s, _ := g.r.Status(); fmt.Sprint(s.Refused) != "[pods (401)]" {
			t.Errorf("refused: %v", s.Refused)
		}
		api.change(func() { api.refuse = 0 })
		time.Sleep(16 * time.Second)
		if s, _ := g.r.Status(); len(s.Refused) > 0 || g.up() != 1 {
			t.Errorf("refused: %v; up %v", s.Refused, g.up())
		}
	})
}

// TestUnwatchedInStatus: the status says which resource has no watch though the API server answers, and
// since when, after a grace: at the start, and later.
func TestUnwatchedInStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI(t)
		api.change(func() { api.refuse = http.StatusTooManyRequests })
		r := api.recorder(t, vfs.NewMem())
		r.listenEvery, r.trimEvery, r.rediscover = time.Second, time.Minute, time.Minute
		g := api.run(t, r)
		since := time.Now()
		heard := since // of the API server, at the latest
		check := func(after time.Duration, unwatched bool) {
			t.Helper()
			time.Sleep(time.Until(since.Add(after)))
			s, _ := g.r.Status()
			text, _ := strings.CutPrefix(strings.Join(s.Unwatched, ", "), "pods since ")
			at, err := time.Parse(time.RFC3339, text)
			if right := err == nil && !at.After(since) && !at.Before(heard.Truncate(time.Second)); right != unwatched || g.up() == 0 != unwatched {
				t.Errorf("after %v: %q, want %t between %v and %v; up %v", after, s.Unwatched, unwatched, heard, since, g.up())
			}
		}
		check(unwatchedGrace-2*time.Second, false)
		check(unwatchedGrace+2*time.Second, true)
		heard = time.Now()
		api.change(func() { api.refuse = 0 })
		g.recorded(api.write("a", "1"))
		g.watched()
		check(2*unwatchedGrace, false)
		since = time.Now()
		api.change(func() { api.refuse = http.StatusTooManyRequests })
		api.disconnect()
		check(unwatchedGrace-2*time.Second, false)
		check(unwatchedGrace+10*time.Second, true)
	})
}
