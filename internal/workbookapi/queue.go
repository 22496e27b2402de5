// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package workbookapi

import (
	"context"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/fairness"
	"github.com/watchkeeper/watchkeeper/internal/sheet"
	"github.com/watchkeeper/watchkeeper/internal/status"
)

// One workbook is read or written at a time, with at most Memory bytes, and the files of
// maxUploads requests are in memory, one of each user. Others wait for wait, the users in turn.
const (
	Memory     = 384 << 20
	maxUploads = 4
	maxWaiting = 8 // of a user
	wait       = 10 * time.Second
	retryAfter = 5 // seconds
)

// A Queue bounds the workbooks of a gateway: those of [Handler], the lists that are written
// as one, and YAML, which takes as much memory. It is safe for concurrent use.
type Queue struct{ uploads, slots *fairness.Queue }

// NewQueue returns a queue.
func NewQueue() *Queue {
	return &Queue{
		uploads: fairness.NewQueue(fairness.QueueOptions{Slots: maxUploads, PerKey: 1, MaxWaiting: maxWaiting, Wait: wait}),
		slots:   fairness.NewQueue(fairness.QueueOptions{Slots: 1, MaxWaiting: maxWaiting, Wait: wait}),
	}
}

// Acquire waits until the caller may read or write a workbook, which ends with ctx. Only the
// first call of release has an effect.
func (q *Queue) Acquire(ctx context.Context) (b *sheet.Budget, release func(), err error) {
	slot, err := acquire(ctx, q.slots)
	if err != nil {
		return nil, nil, err
	}
	return sheet.NewBudget(ctx, Memory), slot.Release, nil
}

func acquire(ctx context.Context, q *fairness.Queue) (*fairness.Slot, error) {
	user, _ := fairness.UserOf(ctx)
	slot, err := q.Acquire(ctx, user.Name)
	if errors.Is(err, fairness.ErrBusy) || errors.Is(err, fairness.ErrShare) {
		return nil, &status.Error{Status: status.TooMany("other workbooks or YAML are being converted: try again", retryAfter)}
	}
	return slot, err
}
