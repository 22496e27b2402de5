// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import "sync"

// A Waker is woken when a cursor may have more. Wake must not block, and must not call
// the timeline: the writer calls it with its locks held.
type Waker interface{ Wake() }

// waiting are the cursors of everything that are to be woken by the next view.
type waiting struct {
	mu      sync.Mutex // guards the fields below, and Cursor.place and Cursor.waker
	cursors []*Cursor
}

// Await makes w be woken, once, when Next may have more. It is for a watcher without a
// goroutine; others receive from Ready. It returns false, and w may not be woken, if Next
// may have more already.
func (c *Cursor) Await(w Waker) bool {
	if c.watcher != nil {
		return c.watcher.await(w)
	}
	q := &c.t.waiting
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.t.View().changed != c.changed {
		return false
	}
	c.waker = w
	if c.place == 0 {
		q.cursors = append(q.cursors, c)
		c.place = len(q.cursors)
	}
	return true
}

// remove forgets a cursor that is closed.
func (q *waiting) remove(c *Cursor) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.place == 0 {
		return
	}
	last := len(q.cursors) - 1
	moved := q.cursors[last]
	q.cursors[c.place-1], moved.place = moved, c.place
	q.cursors[last], q.cursors = nil, q.cursors[:last]
	c.place, c.waker = 0, nil
}

// wake wakes all. The writer calls it after it has published a view.
func (q *waiting) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, c := range q.cursors {
		q.cursors[i] = nil
		w := c.waker
		c.place, c.waker = 0, nil
		w.Wake()
	}
	q.cursors = q.cursors[:0]
}

// await is Await of a selective cursor.
func (w *watcher) await(waker Waker) bool {
	w.waker.Store(&waker)
	select {
	case <-w.wake:
		return false
	default:
		return true
	}
}

// TryNext is Next, which never blocks, so ok is always true. Other sources of a watch may
// have to read from disk.
func (c *Cursor) TryNext() (b Batch, ok bool, err error) {
	b, err = c.Next()
	return b, true, err
}
