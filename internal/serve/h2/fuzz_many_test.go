// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package h2_test

import "testing"

// TestManyFrames is TestFrames with more programs.
func TestManyFrames(t *testing.T) {
	to := uint64(600)
	if testing.Short() {
		to = 150
	}
	runPrograms(t, 30, to)
}
