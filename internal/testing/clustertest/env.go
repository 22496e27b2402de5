// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os"
	"strconv"
	"testing"
)

// FromEnv returns a number from the environment, or otherwise if it is not set.
func FromEnv(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// SkipShort skips a test in make test, which runs "go test -short": make test-all runs it.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
}
