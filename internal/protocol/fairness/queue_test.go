// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func acquire(t *testing.T, q *Queue, key string) *Slot {
	t.Helper()
	s, err := q.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(key, err)
	}
	return s
}

// TestKeysTakeTurns: a key with many waiting callers delays another by one slot.
func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueOptions{Slots: 1, Wait: -1})
		first := acquire(t, q, "a")
		var order []string // each caller appends while it has the only slot
		var callers sync.WaitGroup
		for _, key := range strings.Fields("a a a a b b c") {
			callers.Go(func() {
				s := acquire(t, q, key)
				order = append(order, key)
				s.Release()
			})
			synctest.Wait()
		}
		first.Release()
		callers.Wait()
		if got := strings.Join(order, " "); got != "a b c a b a a" {
			t.Error(got)
		}
		if q.InUse() != 0 || q.Keys() != 0 || len(q.turns) != 0 || q.waiting != 0 {
			t.Errorf("left over: %+v", q)
		}
	})
}

// TestPerKey: a key does not get all slots, and what it cannot have is left for others.
func TestPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueOptions{Slots: 3, PerKey: 2, MaxWaiting: 1, Wait: time.Second})
		a := acquire(t, q, "a")
		acquire(t, q, "a")
		waits := make(chan error)
		go func() {
			_, err := q.Acquire(t.Context(), "a")
			waits <- err
		}()
		synctest.Wait()
		if _, err := q.Acquire(t.Context(), "a"); err != ErrShare {
			t.Error("beyond those that may wait:", err)
		}
		b := acquire(t, q, "b")
		if _, err := q.Acquire(t.Context(), "c"); err != ErrBusy {
			t.Error("without a free slot:", err)
		}
		if err := <-waits; err != ErrShare {
			t.Error("after the wait:", err)
		}
		go func() {
			_, err := q.Acquire(t.Context(), "a")
			waits <- err
		}()
		synctest.Wait()
		b.Release() // is not for a
		synctest.Wait()
		select {
		case err := <-waits:
			t.Error("a third slot:", err)
		default:
		}
		a.Release()
		a.Release()
		if err := <-waits; err != nil || q.InUse() != 2 {
			t.Error(err, q.InUse())
		}
	})
}

// TestMaxAllWaiting: callers of many keys cannot wait without bound, and one that does not
// wait is refused at once.
func TestMaxAllWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueOptions{Slots: 1, MaxAllWaiting: 5, Wait: time.Second})
		acquire(t, q, "a")
		var refused, late atomic.Int32
		began := time.Now()
		for n := range 20 {
			go func() {
				if _, err := q.Acquire(t.Context(), fmt.Sprint(n)); err != ErrBusy {
					t.Error(err)
				}
				if refused.Add(1); time.Since(began) > 0 {
					late.Add(1)
				}
			}()
		}
		time.Sleep(2 * time.Second)
		if refused.Load() != 20 || late.Load() != 5 || q.waiting != 0 {
			t.Errorf("%d refused, %d of them late, %d wait", refused.Load(), late.Load(), q.waiting)
		}
	})
}

// TestCallerLeaves: a caller that stops waiting keeps nothing.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(QueueOptions{Slots: 1, Wait: -1})
		a := acquire(t, q, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		left := make(chan error)
		go func() {
			_, err := q.Acquire(ctx, "b")
			left <- err
		}()
		synctest.Wait()
		cancel(gone)
		if err := <-left; err != gone {
			t.Error(err)
		}
		a.Release()
		if q.InUse() != 0 || q.Keys() != 0 {
			t.Errorf("%d slots, %d keys", q.InUse(), q.Keys())
		}
		acquire(t, q, "c")
	})
}

// TestQueueAtRandom: under any order of calls the bounds hold, every caller gets an answer,
// and nothing is left at the end.
func TestQueueAtRandom(t *testing.T) {
	q := NewQueue(QueueOptions{Slots: 5, PerKey: 3, MaxWaiting: 4, MaxAllWaiting: 12, Wait: time.Millisecond})
	var all atomic.Int32
	var of [4]atomic.Int32
	var got, refused atomic.Int32
	var callers sync.WaitGroup
	for caller := range 40 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for range 300 {
				key := random.IntN(len(of))
				ctx, cancel := t.Context(), func() {}
				if random.IntN(3) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(500))*time.Microsecond)
				}
				s, err := q.Acquire(ctx, fmt.Sprint(key))
				cancel()
				if err != nil {
					refused.Add(1)
					if !slices.Contains([]error{ErrBusy, ErrShare, context.DeadlineExceeded}, err) {
						t.Error(err)
					}
					continue
				}
				got.Add(1)
				if a, k := all.Add(1), of[key].Add(1); a > 5 || k > 3 {
					t.Errorf("%d slots, %d of a key", a, k)
				}
				time.Sleep(time.Duration(random.IntN(100)) * time.Microsecond)
				all.Add(-1)
				of[key].Add(-1)
				s.Release()
			}
		})
	}
	callers.Wait()
	t.Log(got.Load(), "got a slot,", refused.Load(), "were refused")
	if got.Load() == 0 || refused.Load() == 0 || q.InUse() != 0 || q.Keys() != 0 || q.waiting != 0 || len(q.turns) != 0 {
		t.Errorf("%+v", q)
	}
}

func BenchmarkQueue(b *testing.B) {
	q := NewQueue(QueueOptions{Slots: 4, Wait: -1})
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			s, _ := q.Acquire(b.Context(), "a")
			s.Release()
		}
	})
}
