// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// TestMaxRateExtremes: a rate below 1 is a pause, however long; what is not a positive
// number is no limit.
func TestMaxRateExtremes(t *testing.T) {
	for rate, want := range map[float64]int{ // calls in an hour
		0.01: 37, 1.0 / 1800: 3, 1e-4: 1, 1e-10: 1, 1e-300: 1, math.SmallestNonzeroFloat64: 1,
		0: 50, -1: 50, math.Inf(-1): 50, math.NaN(): 50, math.Inf(1): 50, math.MaxFloat64: 50, 1e12: 50,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{MaxRate: rate}, succeed)
			for n := range 50 {
				b.event(live, string(rune('A'+n)))
			}
			time.Sleep(time.Hour)
			if n := len(b.read()); n != want {
				t.Errorf("rate %v: %d calls in an hour, want %d", rate, n, want)
			}
			b.stop()
		})
	}
}
