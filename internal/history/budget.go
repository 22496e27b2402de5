// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"sync"
)

// maxEventBytes limits, approximately, what all readers of events hold together
// (T10): values, previous objects, and events built ahead.
const maxEventBytes = 320 << 20

// A budget is a number of bytes that readers share. The more readers there are,
// the less each gets. A reader waits until there is enough, and holds nothing
// meanwhile, so readers cannot wait for each other in a circle.
type budget struct {
	limit int64

	mu      sync.Mutex // guards the fields below
	freed   *sync.Cond
	used    int64
	readers int
}

func newBudget(limit int64) *budget {
	b := &budget{limit: limit}
	b.freed = sync.NewCond(&b.mu)
	return b
}

// enter and leave count a reader.
func (b *budget) enter() { b.count(1) }

func (b *budget) leave() { b.count(-1) }

func (b *budget) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers += n
}

// share is the most that one reader should hold.
func (b *budget) share() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit / int64(b.readers+1)
}

// take returns how many bytes a reader gets, between minBytes and want. If less
// than minBytes is free it waits, or returns 0 if wait is false.
func (b *budget) take(minBytes, want int64, wait bool) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.used > 0 && b.used+minBytes > b.limit {
		if !wait {
			return 0
		}
		b.freed.Wait()
	}
	got := max(minBytes, min(want, b.limit-b.used))
	b.used += got
	return got
}

// settle corrects what a reader holds, after take was given an estimate.
func (b *budget) settle(held, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used += now - held; now < held {
		b.freed.Broadcast()
	}
}

// ReadUsage is what readers of events hold at the moment.
type ReadUsage struct {
	Readers int   // iterations of [Stream.Events] in progress
	Bytes   int64 // approximately
}

// ReadUsage returns what readers of events hold at the moment.
func (s *Store) ReadUsage() ReadUsage {
	s.readBudget.mu.Lock()
	defer s.readBudget.mu.Unlock()
	return ReadUsage{s.readBudget.readers, s.readBudget.used}
}
