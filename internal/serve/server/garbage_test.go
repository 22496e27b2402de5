// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

// The percentage settles where the collector has its maximum share.
func TestGCPercent(t *testing.T) {
	for _, test := range []struct {
		was      int
		gc, user float64
		want     int
	}{
		{20, 0, 0, 20},
		{100, 0, 0.05, 20},    // idle again
		{20, 0.02, 1.98, 20},  // a small share
		{20, 0.5, 1.5, 50},    // a quarter
		{50, 0.2, 1.8, 50},    // the maximum share
		{20, 1.6, 0.4, 100},   // the maximum percentage
		{100, 0.05, 1.95, 25}, // a smaller share than before
		{100, 0.002, 1.998, 20},
	} {
		if got := gcPercent(test.was, test.gc, test.user); got != test.want {
			t.Errorf("%d%%, %g s of %g: %d%%, want %d%%", test.was, test.gc, test.gc+test.user, got, test.want)
		}
	}
}

// Memory is returned once after work, when that has ended, and not too often.
func TestReturns(t *testing.T) {
	const mb = 1 << 20
	start := time.Now()
	var r returns
	for i, step := range []struct {
		at        int // seconds
		allocated int // MB since the step before
		due       bool
		took      time.Duration
	}{
		{0, 0, false, 0},   // it has not worked yet
		{3, 500, false, 0}, // it works
		{6, 500, false, 0},
		{9, 9, true, time.Millisecond}, // 4 % of 200 MB, and 1 MB
		{12, 9, false, 0},              // it has not worked since
		{15, 50, false, 0},
		{18, 0, false, 0}, // too soon
		{21, 0, true, 2 * time.Second},
		{24, 50, false, 0},
		{27, 0, false, 0},
		{218, 0, false, 0}, // a return that takes long is rarer
		{221, 0, true, time.Millisecond},
	} {
		now, u := start.Add(time.Duration(step.at)*time.Second), usage{allocated: r.last + uint64(step.allocated)*mb, live: 200 * mb}
		if due := r.due(now, u); due != step.due {
			t.Errorf("step %d, at %d s: due is %v", i, step.at, due)
		}
		if step.due {
			r.done(now, step.took, u)
		}
	}
}
