// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import "time"

// waiting is a heap of items by the time at which they are due.
type waiting []*item

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(a, b int) bool { return w[a].since.Before(w[b].since) }

func (w waiting) Swap(a, b int) {
	w[a], w[b] = w[b], w[a]
	w[a].index, w[b].index = a, b
}

// Push implements heap.Interface.
func (w *waiting) Push(x any) {
	it := x.(*item)
	it.index = len(*w)
	*w = append(*w, it)
}

// Pop implements heap.Interface.
func (w *waiting) Pop() any {
	all := *w
	n := len(all) - 1
	it := all[n]
	all[n] = nil
	*w = all[:n]
	it.index = notWaiting
	return it
}

// A limiter is a token bucket that holds the tokens of a second. The zero limiter is
// without a limit.
type limiter struct {
	interval time.Duration // between tokens; 0 for no limit
	capacity time.Duration // of the bucket less one token
	full     time.Time     // when it is full again
}

// maxInterval is what the interval of the lowest rates is cut to: a longer one may not fit
// into a Duration, or a time after it not into a Time.
const maxInterval = 100 * 365 * 24 * time.Hour

func newLimiter(rate float64) limiter {
	if !(rate > 0) { // or not a number
		return limiter{}
	}
	interval := time.Duration(min(float64(time.Second)/rate, float64(maxInterval)))
	return limiter{interval: interval, capacity: max(time.Second-interval, 0)}
}

// next returns the time of the next token.
func (l *limiter) next() time.Time { return l.full.Add(-l.capacity) }

// take takes a token that is there at the time now.
func (l *limiter) take(now time.Time) {
	if now.After(l.full) {
		l.full = now
	}
	l.full = l.full.Add(l.interval)
}
