// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os"
	"testing"
)

// TestMinorNeedsKubernetes: a program without Kubernetes, such as this test, has no version of
// it, and says so.
func TestMinorNeedsKubernetes(t *testing.T) {
	t.Setenv("LOCALCLUSTER_BIN", os.Args[0])
	if minor, err := Minor(); err == nil {
		t.Errorf("Kubernetes 1.%d", minor)
	}
}
