// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestUnwatchedInStatus: the status says which resource has no watch though the API server answers, and
// since when, after a grace: at the start, and later.
func TestUnwatchedInStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI(t)
		api.change(func() { api.refuse = http.StatusTooManyRequests })
		g := api.run(t, api.recorder(t, vfs.NewMem()))
		since := time.Now()
		check := func(after time.Duration, unwatched bool) {
			t.Helper()
			time.Sleep(time.Until(since.Add(after)))
			want := "[]"
			if unwatched {
				want = fmt.Sprintf("[pods since %s]", since.UTC().Format(time.RFC3339))
			}
			s, _ := g.r.Status()
			if got := fmt.Sprint(s.Unwatched); got != want || g.up() == 0 != unwatched {
				t.Errorf("after %v: %s, want %s; up %v", after, got, want, g.up())
			}
		}
		check(unwatchedGrace-2*time.Second, false)
		check(unwatchedGrace+2*time.Second, true)
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
