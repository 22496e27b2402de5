// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import "time"

// A Status describes the queue of a controller at one moment. It is zero while the
// controller does not run.
type Status struct {
	// Live and Initial are how many keys wait for a worker, by their priority.
	Live, Initial int
	// Waiting is how many keys wait for a time: for a retry, or for [Result].After.
	Waiting int
	// Running is how many calls of the function have not returned.
	Running int
}

// Status returns the controller's status. Any goroutine may call it at any time.
func (c *Controller) Status() Status {
	c.mu.Lock()
	q := c.queue
	c.mu.Unlock()
	if q == nil {
		return Status{}
	}
	return q.status()
}

// Metrics are functions that a controller calls, so that a program can count its work.
// [Status] has the depth of the queue. Functions that are nil are not called. They are
// called concurrently; the controller waits for them to return and holds no lock while
// it does.
type Metrics struct {
	// Reconciled is called after each call of the function, with how long the key had
	// been waiting for a worker, how long the call took, and its error.
	Reconciled func(waited, took time.Duration, err error)
	// Retried is called when a call has failed and will be retried, with how many have
	// failed in a row, and the pause before the next one.
	Retried func(failures int, pause time.Duration)
}

// complete returns m with all functions.
func (m Metrics) complete() Metrics {
	if m.Reconciled == nil {
		m.Reconciled = func(time.Duration, time.Duration, error) {}
	}
	if m.Retried == nil {
		m.Retried = func(int, time.Duration) {}
	}
	return m
}
