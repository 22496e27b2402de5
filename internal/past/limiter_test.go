// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
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
