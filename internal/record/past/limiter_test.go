// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// TestLimiter: a caller without a slot waits for one, for a limited time.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter("list", 2, 10*time.Second)
		release, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Acquire(t.Context()); !errors.Is(err, ErrBusy) || l.Rejected() != 1 || l.InUse() != 2 {
			t.Errorf("a third slot: %v, %d rejected, %d in use", err, l.Rejected(), l.InUse())
		}
		go func() {
			time.Sleep(time.Second)
			release()
		}()
		if _, err := l.Acquire(t.Context()); err != nil {
			t.Errorf("a slot that becomes free: %v", err)
		}
	})
}

// TestLimiterPerUser: a user does not get all slots, whatever the limit, and what another
// one asks for does not wait for the first.
func TestLimiterPerUser(t *testing.T) {
	for _, tt := range []struct{ slots, limit, share int }{{4, 3, 3}, {4, 9, 3}, {2, 2, 1}, {1, 2, 1}} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter("list", tt.slots, 0)
			l.PerUser(fairness.NewUsers(fairness.Limits{Past: tt.limit}, slog.New(slog.DiscardHandler)), "lists of the past in flight")
			greedy := fairness.WithUser(t.Context(), fairness.UserNamed("greedy"))
			var releases []func()
			for range tt.share {
				release, err := l.Acquire(greedy)
				if err != nil {
					t.Fatal(err)
				}
				releases = append(releases, release)
			}
			waiting := make(chan error)
			go func() {
				_, err := l.Acquire(greedy)
				waiting <- err
			}()
			synctest.Wait()
			if _, err := l.Acquire(fairness.WithUser(t.Context(), fairness.UserNamed("modest"))); (err != nil) != (tt.slots == 1) {
				t.Error("another user:", err)
			}
			refused, ok := errors.AsType[*status.Error](<-waiting)
			if !ok || refused.Code != http.StatusTooManyRequests || !strings.Contains(refused.Message, "--max-past-reads-per-user") || l.Rejected() == 0 {
				t.Errorf("beyond the bound: %v, %d rejected", refused, l.Rejected())
			}
			go func() {
				time.Sleep(time.Second)
				releases[0]()
			}()
			if _, err := l.Acquire(greedy); err != nil {
				t.Error("a slot that becomes free:", err)
			}
		})
	}
}
