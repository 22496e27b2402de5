// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/status"
)

const (
	// maxLists is how many whole lists of the past are held at a time: unlike those
	// of timelines, they share no objects (T10). Others wait for listWait, and are
	// then asked to retry in listRetry seconds.
	maxLists  = 4
	listWait  = 10 * time.Second
	listRetry = 5
	// smallList is up to which limit a list is not counted.
	smallList = 1000
)

// ErrBusy: the limit is reached, and no slot became free in time.
var ErrBusy = errors.New("too many at a time")

// A Limiter bounds how many answers that take much memory, or work, are made at a
// time (T10). It is safe for concurrent use.
type Limiter struct {
	// What is limited, as metrics name it.
	What string

	wait     time.Duration // for a slot
	slots    chan struct{}
	rejected atomic.Int64
}

// NewLimiter returns a limiter with n slots, for which callers wait up to a time.
func NewLimiter(what string, n int, wait time.Duration) *Limiter {
	return &Limiter{What: what, wait: wait, slots: make(chan struct{}, n)}
}

// Acquire takes a slot until release. It waits for one, and fails with [ErrBusy] if
// none becomes free.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	release = func() { <-l.slots }
	select {
	case l.slots <- struct{}{}:
		return release, nil
	default:
	}
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case l.slots <- struct{}{}:
		return release, nil
	case <-timer.C:
		l.rejected.Add(1)
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// InUse returns how many slots are taken, Rejected how many callers got ErrBusy.
func (l *Limiter) InUse() int      { return len(l.slots) }
func (l *Limiter) Rejected() int64 { return l.rejected.Load() }

// AcquireList takes a slot for a list with a limit, until release. A page of up to
// a thousand objects needs none: then held is false. While a slot is held the
// client must keep reading; others are queued.
func (p *Past) AcquireList(ctx context.Context, limit int64) (release func(), held bool, err error) {
	if 0 < limit && limit <= smallList {
		return func() {}, false, nil
	}
	release, err = p.Lists.Acquire(ctx)
	return release, true, err
}

// tooBusy is the answer where no slot for a list became free.
func tooBusy() *metav1.Status {
	return status.TooMany(fmt.Sprintf("%d whole lists of the past are being answered: try again, or ask for pages of up to %d", maxLists, smallList), listRetry)
}
