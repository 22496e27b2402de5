// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clocktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
)

// TestClock: the wall clock is set, the monotonic one is not.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ahead := clocktest.New(), time.Duration(0)
		for _, by := range []time.Duration{time.Second, -time.Hour, 365 * 24 * time.Hour, -3 * 365 * 24 * time.Hour} {
			before := c.Now()
			c.Set(by)
			ahead += by
			time.Sleep(time.Minute)
			after := c.Now()
			if got := after.Sub(before); got != time.Minute {
				t.Errorf("%v have passed", got)
			}
			if got := after.Round(0).Sub(before.Round(0)); got != time.Minute+by {
				t.Errorf("set by %v: %v by the wall clock", by, got)
			}
			if got := after.Round(0); !got.Equal(time.Now().Add(ahead)) {
				t.Errorf("set by %v: it shows %v", by, got)
			}
		}
		if all := c.Settings(); len(all) != 5 || all[4].Ahead != ahead {
			t.Errorf("settings %v", all)
		}
	})
	var system *clocktest.Clock
	if before, now := time.Now(), system.Now(); now.Before(before) {
		t.Errorf("the system's clock shows %v", now)
	}
}
