// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package spans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/spans"
)

func TestJoin(t *testing.T) {
	bounds := func(s [2]int) (from, to time.Time) { return time.Unix(int64(s[0]), 0), time.Unix(int64(s[1]), 0) }
	for want, all := range map[string][][2]int{
		"":                        nil,
		"1-5 [[1 5] [2 3] [5 5]]": {{2, 3}, {1, 5}, {5, 5}},
		"1-9 [[1 2] [2 9] [4 5]]": {{1, 2}, {2, 9}, {4, 5}},
		"1-2 [[1 2]] 3-4 [[3 4]]": {{3, 4}, {1, 2}},
	} {
		got := ""
		for i, s := range spans.Join(all, bounds) {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("%d-%d %v", s.From.Unix(), s.To.Unix(), s.Of)
		}
		if got != want {
			t.Errorf("%v: %q, want %q", all, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	counts := spans.Counted([2]time.Time{at(1), at(5)}, [2]time.Time{at(3), at(7)}, [2]time.Time{at(5), {}}, [2]time.Time{at(9), at(9)})
	got := ""
	for s := range int64(10) {
		got += fmt.Sprint(counts.At(at(s)))
	}
	if got != "0112222111" {
		t.Errorf("at each second: %s", got)
	}
	for _, tt := range []struct {
		from, to int64
		want     string // seconds and counts
	}{{0, 1, ""}, {0, 2, "1:1"}, {2, 3, "1:1"}, {3, 6, "3:2 5:2"}, {8, 8, "7:1"}, {8, 20, "7:1 9:1"}} {
		got := ""
		for _, c := range counts.Within(at(tt.from), at(tt.to)) {
			got += fmt.Sprintf(" %d:%d", c.From.Unix(), c.N)
		}
		if strings.TrimSpace(got) != tt.want {
			t.Errorf("%d to %d: %s, want %s", tt.from, tt.to, got, tt.want)
		}
	}
	if n := spans.Counted().At(at(1)); n != 0 {
		t.Errorf("%d of none", n)
	}
}
