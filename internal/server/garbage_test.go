// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

// The percentage settles where the collector has its maximum share.
func TestGCPercent(t *testing.T) {
	for _, test := range []struct {
		was      int
		gc, user float64
		want     int
	}{
		{20, 0, 0, 20},
		{100, 0, 0.05, 20},    // idle again
		{20, 0.02, 1.98, 20},  // a small share
		{20, 0.5, 1.5, 50},    // a quarter
		{50, 0.2, 1.8, 50},    // the maximum share
		{20, 1.6, 0.4, 100},   // the maximum percentage
		{100, 0.05, 1.95, 25}, // a smaller share than before
		{100, 0.002, 1.998, 20},
	} {
		if got := gcPercent(test.was, work{test.gc, test.user}); got != test.want {
			t.Errorf("%d%%, %g s of %g: %d%%, want %d%%", test.was, test.gc, test.gc+test.user, got, test.want)
		}
	}
}
