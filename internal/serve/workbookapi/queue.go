// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package workbookapi

import (
	"context"
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// One workbook is read or written at a time, with at most Memory bytes and for maxTime, and the
// files of maxUploads requests are in memory, one of each user. Others wait for wait, the users in
// turn: longer than another user has the only slot, who may be converting one and waiting for it.
const (
	Memory     = 384 << 20
	maxTime    = 30 * time.Second
	maxUploads = 4
	maxWaiting = 8 // of a user
	wait       = 2*maxTime + 10*time.Second
	busy       = "other workbooks are being converted: try again"
	retryAfter = 5 // seconds
)

var errLong = fmt.Errorf("%w: it takes more than %v to convert", sheet.ErrInvalid, maxTime)

// A Queue bounds the workbooks of a gateway: those of [Handler], and the lists that are written
// as one. It is safe for concurrent use.
type Queue struct {
	users          *fairness.Users
	uploads, slots *fairness.Queue
}

// NewQueue returns a queue. users may be nil.
func NewQueue(users *fairness.Users) *Queue {
	return &Queue{
		users:   users,
		uploads: fairness.NewQueue(fairness.QueueOptions{Slots: maxUploads, PerKey: 1, MaxWaiting: maxWaiting, Wait: wait}),
		slots:   fairness.NewQueue(fairness.QueueOptions{Slots: 1, MaxWaiting: maxWaiting, Wait: wait}),
	}
}

// Acquire waits until the caller may read or write a workbook, which ends with ctx, or after
// maxTime with an error that wraps [sheet.ErrInvalid]. Only the first call of release has an effect.
func (q *Queue) Acquire(ctx context.Context) (b *sheet.Budget, release func(), err error) {
	slot, err := q.users.Slot(ctx, q.slots, busy, retryAfter)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, errLong)
	return sheet.NewBudget(ctx, Memory), func() { cancel(); slot.Release() }, nil
}
