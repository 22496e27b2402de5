// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget limits the memory that several readers hold together.
package budget

import "sync"

// A Budget is a number of bytes that readers share. The more readers there are,
// the less each gets. A reader waits until there is enough, and holds nothing
// meanwhile, so readers cannot wait for each other in a circle.
type Budget struct {
	limit int64

	mu      sync.Mutex // guards the fields below
	freed   *sync.Cond
	used    int64
	readers int
}

// New returns a budget of so many bytes.
func New(limit int64) *Budget {
	b := &Budget{limit: limit}
	b.freed = sync.NewCond(&b.mu)
	return b
}

// Enter counts a reader.
func (b *Budget) Enter() { b.count(1) }

// Leave is called when it ends.
func (b *Budget) Leave() { b.count(-1) }

func (b *Budget) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers += n
}

// Share is the most that one reader should hold.
func (b *Budget) Share() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit / int64(b.readers+1)
}

// Take returns how many bytes a reader gets, between minBytes and want. If less
// than minBytes is free it waits, or returns 0 if wait is false.
func (b *Budget) Take(minBytes, want int64, wait bool) int64 {
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

// Settle corrects what a reader holds, after Take was given an estimate.
func (b *Budget) Settle(held, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used += now - held; now < held {
		b.freed.Broadcast()
	}
}

// Used returns the number of readers, and the bytes that they hold.
func (b *Budget) Used() (readers int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readers, b.used
}
