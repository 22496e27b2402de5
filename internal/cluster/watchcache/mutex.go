// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import "context"

// A Mutex is a mutual exclusion lock. A context can bound the wait for it.
// [NewMutex] makes one.
type Mutex chan struct{}

// NewMutex returns an unlocked mutex.
func NewMutex() Mutex { return make(Mutex, 1) }

// Lock locks the mutex.
func (m Mutex) Lock() { m <- struct{}{} }

// TryLock locks the mutex unless it is locked, and reports whether it did.
func (m Mutex) TryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock unlocks the mutex.
func (m Mutex) Unlock() { <-m }

// LockBefore locks the mutex unless ctx ends first. It reports whether it locked the
// mutex.
func (m Mutex) LockBefore(ctx context.Context) bool {
	if m.TryLock() {
		return true
	}
	select {
	case m <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
