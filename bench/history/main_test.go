// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The fake API server's process is this program, which here is the test.
func TestMain(m *testing.M) {
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-fakeapi") }) {
		main()
		return
	}
	os.Exit(m.Run())
}

// All scenarios, with a few objects.
func TestRun(t *testing.T) {
	was := *rounds
	*rounds = 1
	defer func() { *rounds = was }()
	s := sizes{pods: 200, events: 3000, rate: 3000, slow: 100, lagging: 500 * time.Millisecond, many: 300, resumed: 200}
	var out, progress bytes.Buffer
	if err := run(t.Context(), s, &out, &progress); err != nil {
		t.Fatalf("%v\n%s\n%s", err, progress.Bytes(), out.Bytes())
	}
	for want, times := range map[string]int{
		`(?m)^BenchmarkIngest 3000( [0-9.]+ [^ \n]+){3} 0 gaps `:                                      1,
		`(?m)^BenchmarkListPast/form=(json|table|present) 1 [0-9]+ ns/op [0-9.]+ cpu-ns/op [0-9]+ B$`: 15,
		`(?m)^BenchmarkListPast/form=store 1 [0-9]+ ns/op$`:                                           3,
		`(?m)^BenchmarkVersions/of=http 1 [0-9]+ ns/op [0-9]+ B$`:                                     20,
		`(?m)^BenchmarkReplay/of=http 3000 [0-9.]+ events/s [0-9.]+ cpu-ns/event$`:                    1,
		`(?m)^BenchmarkReplay/of=store 3000 [0-9.]+ events/s$`:                                        1,
		`(?m)^BenchmarkDisk 3000( [0-9.]+ [^ \n]+){3}$`:                                               1,
		`(?m)^BenchmarkLatency/recording=(on|off)/rate=(100|1000) [0-9]+( [-0-9.e]+ [^ \n]+){3}$`:     4,
		`(?m)^BenchmarkRestart 300( [0-9.]+ [^ \n]+){3} 0 lists `:                                     1,
		`(?m)^\| gaps in their record \| 0 \| 0 \| yes \|$`:                                           1,
		`(?m)^\| lists upstream \| 0 \| 0 \| yes \|$`:                                                 1,
	} {
		if n := len(regexp.MustCompile(want).FindAllString(out.String(), -1)); n != times {
			t.Errorf("%q is there %d times, want %d, in\n%s", want, n, times, out.Bytes())
		}
	}
}
