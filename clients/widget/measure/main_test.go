// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"testing"
)

// TestRun: the three programs start, one goes through an outage, and the table has every
// figure. A restart of the API server takes seconds.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	t.Chdir("../..")
	var out, progress bytes.Buffer
	if err := (options{objects: 20, rounds: 1, calm: []string{"stock", "formanager"}}).run(t.Context(), &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.Bytes())
	}
	for want, times := range map[string]int{
		`(?m)^BenchmarkWidget/controller=(example|stock|formanager) 1 [0-9.]+ lines [0-9.]+ type-lines [0-9.]+ binary-MB$`: 3,
		`(?m)^BenchmarkWidget/controller=(example|stock|formanager) 1 [0-9.]+ ready-s .* [0-9.]+ heap-MB`:                  3,
		`(?m)^BenchmarkWidget/controller=example 1 .* [0-9.]+ reconciled-s `:                                               1,
		`(?m)^\| [^|]+( \| [0-9.]+)( \| ([0-9.]+|NaN)){2} \|$`:                                                             len(rows),
	} {
		if n := len(regexp.MustCompile(want).FindAllString(out.String(), -1)); n != times {
			t.Errorf("%q is there %d times, want %d, in\n%s", want, n, times, out.Bytes())
		}
	}
}

func TestCodeLines(t *testing.T) {
	n := codeLines([]byte("// Package p.\npackage p\n\n/* no\ncode */\nfunc f() string { // some\n\treturn `a\nb`\n}\n"))
	if n != 5 {
		t.Errorf("%d lines, want 5", n)
	}
}
