// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"testing"
	"time"
)

// AwaitEnd returns once localcluster up has ended by itself.
func AwaitEnd(t *testing.T, c *Cluster, timeout time.Duration) {
	t.Helper()
	select {
	case <-c.up.done:
	case <-time.After(timeout):
		t.Fatal("localcluster up has not ended")
	}
}
