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

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

const (
	// maxLists is how many whole lists of the past are in memory at a time. Unlike
	// the lists of a timeline, they share no objects (T10). Further lists wait for
	// listWait; then their clients are asked to retry after listRetry seconds.
	maxLists  = 4
	listWait  = 10 * time.Second
	listRetry = 5
	// smallList is the largest limit with which a list needs no slot.
	smallList = 1000
)

// ErrBusy: all slots are taken, and none became free in time.
var ErrBusy = fairness.ErrBusy

// A Limiter bounds how many expensive answers of one kind are made at a time (T10).
// It is safe for concurrent use.
type Limiter struct {
	// What is the kind of answer, for metrics.
	What string

	slots    *fairness.Queue
	refusal  func(context.Context) error // for a user who has too many; nil without users
	rejected atomic.Int64
}

// NewLimiter returns a limiter with n slots. A caller waits at most wait for one.
func NewLimiter(what string, n int, wait time.Duration) *Limiter {
	return &Limiter{What: what, slots: fairness.NewQueue(fairness.QueueOptions{Slots: n, Wait: wait})}
}

// PerUser makes the limiter give each user only some of its slots, and free ones to users
// in turn. It must be called before the first use.
func (l *Limiter) PerUser(u *fairness.Users, what string) { l.refusal = u.PerUserPast(l.slots, what) }

// Acquire takes a slot, which the caller frees with release. If no slot becomes free
// in time, it fails with [ErrBusy], or with a status.Error for a user who has too many.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	user, _ := fairness.UserOf(ctx)
	slot, err := l.slots.Acquire(ctx, user.Name)
	switch {
	case err == nil:
		return slot.Release, nil
	case errors.Is(err, fairness.ErrShare):
		l.rejected.Add(1)
		return nil, l.refusal(ctx)
	case errors.Is(err, ErrBusy):
		l.rejected.Add(1)
	}
	return nil, err
}

// InUse returns how many slots are taken, Rejected how many callers got none.
func (l *Limiter) InUse() int      { return l.slots.InUse() }
func (l *Limiter) Rejected() int64 { return l.rejected.Load() }

// AcquireList takes a slot for a list with the given limit, which the caller frees
// with release. A page of up to smallList objects needs no slot: held is false then.
// While a slot is held the client must keep reading; other lists are queued.
func (p *Past) AcquireList(ctx context.Context, limit int64) (release func(), held bool, err error) {
	if 0 < limit && limit <= smallList {
		return func() {}, false, nil
	}
	release, err = p.Lists.Acquire(ctx)
	return release, true, err
}

// tooBusy is the answer if no slot for a list became free.
func tooBusy() *metav1.Status {
	return status.TooMany(fmt.Sprintf("%d answers from the past that are as large as whole lists are being made: try again, or ask for pages of up to %d objects, of the history for smaller ones", maxLists, smallList), listRetry)
}
