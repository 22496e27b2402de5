// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import "sync"

// eventBytes is about how much those who read events hold of them, all together
// (T10): values, what objects were before, and events that are made ahead.
const eventBytes = 320 << 20

// A budget is bytes that readers share. The more readers there are, the less each
// gets, and who finds too little waits. Nobody waits for some who holds some.
type budget struct {
	most int64

	mu      sync.Mutex // guards what follows
	freed   *sync.Cond
	used    int64
	readers int
}

func newBudget(most int64) *budget {
	b := &budget{most: most}
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

// share is what a reader may hold at the most.
func (b *budget) share() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most / int64(b.readers+1)
}

// take returns how much a reader gets: at least the least, for which it waits
// unless it is not to.
func (b *budget) take(least, want int64, wait bool) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.used > 0 && b.used+least > b.most {
		if !wait {
			return 0
		}
		b.freed.Wait()
	}
	got := max(least, min(want, b.most-b.used))
	b.used += got
	return got
}

// settle has a reader hold another amount: what it took was a guess.
func (b *budget) settle(held, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used += now - held; now < held {
		b.freed.Broadcast()
	}
}

// A Reading is how much is being read.
type Reading struct {
	Readers int   // of events
	Bytes   int64 // that they hold, about
}

// Reading returns how much is being read.
func (s *Store) Reading() Reading {
	s.events.mu.Lock()
	defer s.events.mu.Unlock()
	return Reading{s.events.readers, s.events.used}
}
