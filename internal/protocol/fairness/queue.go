// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

var (
	// ErrBusy: all slots are taken, and none became free in time.
	ErrBusy = errors.New("too many at a time")
	// ErrShare: the key has as many slots as one may have, or too many that wait for one.
	ErrShare = errors.New("too many of one at a time")
)

// QueueOptions are the bounds of a [Queue]; zero means none, unless it says otherwise.
type QueueOptions struct {
	// Slots are how many slots there are.
	Slots int
	// PerKey is how many slots a key may have.
	PerKey int
	// MaxWaiting is how many callers of a key may wait for a slot, and MaxAllWaiting how many
	// of all keys.
	MaxWaiting, MaxAllWaiting int
	// Wait is how long a caller waits for a slot; with 0 it does not, and with a negative one
	// as long as its context lasts.
	Wait time.Duration
}

// A Queue gives slots to the keys that wait for one in turn, one slot each; callers of the
// same key get them in the order of their calls. So a key with many callers delays each
// other key by one slot. It is safe for concurrent use.
type Queue struct {
	QueueOptions

	mu      sync.Mutex // guards the fields below
	used    int
	waiting int
	keys    map[string]*line // those with a slot or a waiting caller
	// turns has the keys that may have a slot when one is free, the next one first. While
	// a slot is free it is empty.
	turns []*line
}

// A line is the callers of one key.
type line struct {
	key     string
	running int // slots, and those that rest
	waiting []*waiter
	listed  bool // in Queue.turns
}

// A waiter is a caller that waits for a slot.
type waiter struct {
	ready chan struct{} // closed when it has a slot
	slot  *Slot         // set before ready is closed
}

// NewQueue returns a queue with free slots.
func NewQueue(o QueueOptions) *Queue { return &Queue{QueueOptions: o, keys: map[string]*line{}} }

// A Slot is one slot of a queue.
type Slot struct {
	q        *Queue
	of       *line
	released bool // guarded by q.mu
}

// Acquire takes a slot. The error is [ErrBusy], [ErrShare], or the cause of the end of ctx.
func (q *Queue) Acquire(ctx context.Context, key string) (*Slot, error) {
	q.mu.Lock()
	l := q.lineLocked(key)
	if s := q.tryLocked(l); s != nil {
		defer q.mu.Unlock()
		return s, nil
	}
	full := q.MaxWaiting > 0 && len(l.waiting) >= q.MaxWaiting
	if full || q.Wait == 0 || q.MaxAllWaiting > 0 && q.waiting >= q.MaxAllWaiting {
		defer q.mu.Unlock()
		defer q.forgetLocked(l)
		if full {
			return nil, ErrShare
		}
		return nil, q.whyLocked(l)
	}
	w := &waiter{ready: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	q.waiting++
	q.listLocked(l)
	q.mu.Unlock()

	var late <-chan time.Time
	if q.Wait > 0 {
		timer := time.NewTimer(q.Wait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-w.ready:
		return w.slot, nil
	case <-late:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.slot != nil && ctx.Err() == nil:
		return w.slot, nil // it came at the same time
	case w.slot != nil:
		q.releaseLocked(w.slot)
		return nil, context.Cause(ctx)
	}
	err := q.whyLocked(l)
	l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
	q.waiting--
	q.forgetLocked(l)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// TryAcquire takes a slot if there is one that nobody waits for, and returns nil otherwise.
func (q *Queue) TryAcquire(key string) *Slot {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lineLocked(key)
	defer q.forgetLocked(l)
	return q.tryLocked(l)
}

// lineLocked returns the line of a key, which the caller forgets if it adds nothing.
func (q *Queue) lineLocked(key string) *line {
	l := q.keys[key]
	if l == nil {
		l = &line{key: key}
		q.keys[key] = l
	}
	return l
}

// tryLocked takes a slot that is free, nil if there is none or another caller waits for it.
func (q *Queue) tryLocked(l *line) *Slot {
	if q.isFreeLocked() && len(l.waiting) == 0 && q.mayRun(l) {
		return q.takeLocked(l)
	}
	return nil
}

func (q *Queue) isFreeLocked() bool  { return q.Slots == 0 || q.used < q.Slots }
func (q *Queue) mayRun(l *line) bool { return q.PerKey == 0 || l.running < q.PerKey }

// whyLocked returns why a caller of a key gets no slot.
func (q *Queue) whyLocked(l *line) error {
	if !q.mayRun(l) {
		return ErrShare
	}
	return ErrBusy
}

func (q *Queue) takeLocked(l *line) *Slot {
	q.used++
	l.running++
	return &Slot{q: q, of: l}
}

// listLocked gives a key a turn if it may have one.
func (q *Queue) listLocked(l *line) {
	if !l.listed && len(l.waiting) > 0 && q.mayRun(l) {
		l.listed = true
		q.turns = append(q.turns, l)
	}
}

// forgetLocked drops a key that has nothing any more.
func (q *Queue) forgetLocked(l *line) {
	if l.running == 0 && len(l.waiting) == 0 && !l.listed {
		delete(q.keys, l.key)
	}
}

// Release frees the slot. Only the first call has an effect.
func (s *Slot) Release() {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.q.releaseLocked(s)
}

// Rest frees the slot for other keys, and for its own after a while.
func (s *Slot) Rest(d time.Duration) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.released {
		return
	}
	s.released = true
	s.q.used--
	s.q.passOnLocked()
	time.AfterFunc(d, func() {
		s.q.mu.Lock()
		defer s.q.mu.Unlock()
		s.q.leaveLocked(s.of)
	})
}

func (q *Queue) releaseLocked(s *Slot) {
	if s.released {
		return
	}
	s.released = true
	q.used--
	q.leaveLocked(s.of)
}

// leaveLocked lets a key have one more slot.
func (q *Queue) leaveLocked(l *line) {
	l.running--
	q.listLocked(l)
	q.forgetLocked(l)
	q.passOnLocked()
}

// passOnLocked gives free slots to those who wait.
func (q *Queue) passOnLocked() {
	for q.isFreeLocked() && len(q.turns) > 0 {
		l := q.turns[0]
		q.turns[0] = nil
		q.turns = q.turns[1:]
		l.listed = false
		if len(l.waiting) == 0 || !q.mayRun(l) { // the callers that waited have left
			q.forgetLocked(l)
			continue
		}
		w := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		q.waiting--
		w.slot = q.takeLocked(l)
		close(w.ready)
		q.listLocked(l)
	}
}

// InUse returns how many slots are taken.
func (q *Queue) InUse() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// Keys returns how many keys are remembered. It is for tests.
func (q *Queue) Keys() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.keys)
}
