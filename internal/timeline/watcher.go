// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A watcher is the entry of a selective cursor in the index.
//
// A cursor gets events in one of two ways. After it was opened or has lagged too
// far, it reads the log before logEnd and matches the events itself. Later events
// are dispatched to it, by their sequence numbers.
//
//	       seq              logEnd
//	log ────┼─────────────────┼───────────────── head
//	        └ read and match ─┘└ take from pending ┘
//
// pending has numbers, not events, so that a cursor that is not read keeps no
// events in memory (T10).
type watcher struct {
	in   Interest
	wake chan struct{} // of capacity 1; filled when Next may have more
	// waker is woken then as well; nil for none.
	waker atomic.Pointer[Waker]

	// For the cursor's goroutine only:
	logEnd  uint64   // events before it are read from the log
	taken   []uint64 // from pending, not yet yielded
	takenTo position // of the cursor when taken is empty

	mu      sync.Mutex // guards pending and lagging
	pending []uint64   // ascending, some twice
	lagging bool       // not all events have been added to pending
}

func newWatcher(in Interest) *watcher {
	return &watcher{in: in, wake: make(chan struct{}, 1)}
}

// add adds an event to pending; the watcher lags if that has maxPending already.
func (w *watcher) add(seq uint64, maxPending int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lagging = w.lagging || len(w.pending) >= maxPending; !w.lagging {
		w.pending = append(w.pending, seq)
	}
}

func (w *watcher) setLagging() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lagging = true
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // the last signal has not been received yet
	}
	if waker := w.waker.Load(); waker != nil {
		(*waker).Wake()
	}
}

// take moves the events before a position from pending to taken. All events
// before it have been dispatched, so taken has every one that concerns the
// cursor. It fails if the watcher lags.
func (w *watcher) take(to position) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lagging {
		return false
	}
	n, _ := slices.BinarySearch(w.pending, to.seq)
	w.taken = append(w.taken[:0], w.pending[:n]...)
	w.pending = append(w.pending[:0], w.pending[n:]...)
	w.takenTo = to
	return true
}

// nextSelected is Next of a selective cursor.
func (c *Cursor) nextSelected() (Batch, error) {
	w := c.watcher
	select {
	case <-w.wake: // what it announced is read now
	default:
	}
	if c.seq >= w.logEnd && len(w.taken) == 0 && !w.take(*c.t.interests.dispatched.Load()) {
		c.t.interests.catchUp(w)
	}
	v := c.t.View() // loaded last, so that it has every event that was dispatched
	b := Batch{At: v.At}
	if c.seq < w.logEnd {
		return b, c.readLog(v, &b)
	}
	for size := 0; len(w.taken) > 0; w.taken = w.taken[1:] {
		seq := w.taken[0]
		if seq < c.seq {
			continue // dispatched twice; or published but not yet dispatched when the cursor was opened
		}
		if err := c.check(v, seq); err != nil {
			return Batch{}, err
		}
		e := v.log[seq-v.first]
		if size >= batchBytes && e.RV > v.log[c.seq-1-v.first].RV {
			c.rv, b.More = max(c.rv, e.RV-1), true
			return b, nil
		}
		c.seq = seq + 1
		size += c.yield(e, &b)
	}
	if err := c.check(v, v.first); err != nil {
		return Batch{}, err
	}
	if w.takenTo.epoch == c.epoch {
		c.seq, c.rv = max(c.seq, w.takenTo.seq), max(c.rv, w.takenTo.rv)
		c.future = c.future && w.takenTo.rv < c.start
	}
	if v.closed && c.seq == v.end() {
		if len(b.Events) == 0 {
			return Batch{}, ErrClosed
		}
		b.More = true // the error; no later view will wake the watcher
	}
	return b, nil
}

// readLog adds the events before logEnd that concern the cursor to a batch, up to
// its size.
func (c *Cursor) readLog(v *View, b *Batch) error {
	if err := c.check(v, c.seq); err != nil {
		return err
	}
	last := c.rv
	for size := 0; c.seq < c.watcher.logEnd; c.seq++ {
		e := v.log[c.seq-v.first]
		if size >= batchBytes && e.RV > last {
			break
		}
		if last = e.RV; c.watcher.in.concerns(e) {
			size += c.yield(e, b)
		}
	}
	c.rv = max(c.rv, last)
	b.More = true // in the log, or dispatched in the meantime
	return nil
}

// yield adds an event to a batch and returns its size.
func (c *Cursor) yield(e *Event, b *Batch) (size int) {
	if c.future && e.RV <= c.start {
		return 0
	}
	b.Events = append(b.Events, e)
	return len(e.Object.JSON)
}
