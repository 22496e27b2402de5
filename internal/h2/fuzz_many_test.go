// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package h2_test

import "testing"

// TestManyFrames is TestFrames with more programs.
func TestManyFrames(t *testing.T) { runPrograms(t, 30, 600) }
