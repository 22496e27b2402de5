// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package attempt has what all callers of reconcile functions need: workers, the pause after
// a failure, and panics as errors.
package attempt

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// ErrGoexit is the failure of a function that does not return.
var ErrGoexit = errors.New("the function ended its goroutine, by runtime.Goexit or t.FailNow")

// Limits returns the number of workers and the shortest and longest pause after a failure,
// with the default of each that is not positive: 4, 100 ms and 30 s.
func Limits(workers int, shortest, longest time.Duration) (int, time.Duration, time.Duration) {
	workers = cmp.Or(max(workers, 0), 4)
	shortest = cmp.Or(max(shortest, 0), 100*time.Millisecond)
	return workers, shortest, max(cmp.Or(max(longest, 0), 30*time.Second), shortest)
}

// Backoff returns the pause after a number of failures in a row. Pauses double from
// shortest to longest, and half of each is random.
func Backoff(failures int, shortest, longest time.Duration) time.Duration {
	d := shortest
	for n := 1; n < failures && d < longest; n++ {
		d *= 2
	}
	d = min(d, longest)
	return d/2 + rand.N(d/2+1)
}

// Recover calls a function. If it panics, Recover returns what failed makes of the
// value and the stack.
func Recover(f func() error, failed func(value any, stack []byte) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = failed(p, debug.Stack())
		}
	}()
	return f()
}
