// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	for failures := 1; failures < 100; failures++ {
		limit := min(200*time.Millisecond<<min(failures-1, 20), 8*time.Second)
		if d := Backoff(failures, 200*time.Millisecond, 8*time.Second); d < limit/2 || d > limit {
			t.Fatalf("after %d failures: %v", failures, d)
		}
	}
}
