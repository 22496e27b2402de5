// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errBusy: all places are taken, and none became free in time.
var errBusy = errors.New("too many at a time")

// places are for answers that take much memory, or work, each: there are so many at
// a time (T10).
type places struct {
	what       string        // is answered
	wait       time.Duration // for one, at the most
	taken      chan struct{}
	turnedAway atomic.Int64 // who found none
}

func newPlaces(what string, n int, wait time.Duration) *places {
	return &places{what: what, wait: wait, taken: make(chan struct{}, n)}
}

// take takes a place, until release. It waits for one, and fails with errBusy if
// none becomes free.
func (p *places) take(ctx context.Context) (release func(), err error) {
	release = func() { <-p.taken }
	select {
	case p.taken <- struct{}{}:
		return release, nil
	default:
	}
	patience := time.NewTimer(p.wait)
	defer patience.Stop()
	select {
	case p.taken <- struct{}{}:
		return release, nil
	case <-patience.C:
		p.turnedAway.Add(1)
		return nil, errBusy
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
