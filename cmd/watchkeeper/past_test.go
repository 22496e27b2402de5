// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import "testing"

// TestPast runs the scripts whose commands read a recording again and again. One process
// serves it; with the race detector, decompressing it takes most of the time.
func TestPast(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	runScripts(t, "past")
}
