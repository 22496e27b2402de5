// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package spans_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/spans"
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
