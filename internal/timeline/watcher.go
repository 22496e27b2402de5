// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"sync"
)

// A watcher is a selective cursor as the index knows it.
//
// It learns of events in one of two ways. Those of the log before scan it looks
// through itself: from where it began, or lagged too far. Those from there on
// the index tells it of, by their sequence numbers.
//
//	       seq               scan
//	log ────┼─────────────────┼───────────────── head
//	        └ read and match ─┘└ take from pending ┘
//
// Numbers, not events, so that one which is stuck keeps nothing alive (T10).
type watcher struct {
	in   Interest
	wake chan struct{} // of one; filled when there is something to take

	// The cursor's own.
	scan  uint64   // up to where the log is to be looked through
	taken []uint64 // of pending, not yet yielded
	place place    // of the cursor when taken is empty

	mu      sync.Mutex // guards what follows
	pending []uint64   // ascending; some twice
	behind  bool       // it was not told of all
}

func newWatcher(in Interest) *watcher {
	return &watcher{in: in, wake: make(chan struct{}, 1)}
}

// tell adds an event, unless that makes more than most.
func (w *watcher) tell(seq uint64, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.behind = w.behind || len(w.pending) >= most; !w.behind {
		w.pending = append(w.pending, seq)
	}
}

func (w *watcher) fallBehind() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind = true
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // it has not yet noticed the last one
	}
}

// take takes over what the watcher was told of, up to where the index has told
// everybody: then every event up to that place is known.
func (w *watcher) take(to place) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.behind {
		return false
	}
	n, _ := slices.BinarySearch(w.pending, to.seq)
	w.taken = append(w.taken[:0], w.pending[:n]...)
	w.pending = append(w.pending[:0], w.pending[n:]...)
	w.place = to
	return true
}

// nextSelected is Next of a selective cursor.
func (c *Cursor) nextSelected() (Batch, error) {
	w := c.watcher
	if c.seq >= w.scan && len(w.taken) == 0 && !w.take(*c.t.index.told.Load()) {
		c.t.index.catchUp(w)
	}
	v := c.t.View() // it has whatever has been told of
	b := Batch{At: v.At}
	if c.seq < w.scan {
		return b, c.look(v, &b)
	}
	for size := 0; len(w.taken) > 0; w.taken = w.taken[1:] {
		seq := w.taken[0]
		if seq < c.seq {
			continue // told of twice; or published, but not yet told of, when the cursor began
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
	if w.place.epoch == c.epoch {
		c.seq, c.rv = max(c.seq, w.place.seq), max(c.rv, w.place.rv)
		c.early = c.early && w.place.rv < c.start
	}
	if len(b.Events) == 0 && v.closed && c.seq == v.end() {
		return Batch{}, ErrClosed
	}
	return b, nil
}

// look looks through the log.
func (c *Cursor) look(v *View, b *Batch) error {
	if err := c.check(v, c.seq); err != nil {
		return err
	}
	last := c.rv
	for size := 0; c.seq < c.watcher.scan; c.seq++ {
		e := v.log[c.seq-v.first]
		if size >= batchBytes && e.RV > last {
			break
		}
		if last = e.RV; c.watcher.in.concerns(e) {
			size += c.yield(e, b)
		}
	}
	c.rv = max(c.rv, last)
	b.More = true // the rest, or what there was to tell meanwhile
	return nil
}

// yield adds an event to a batch, and returns its size.
func (c *Cursor) yield(e *Event, b *Batch) (size int) {
	if c.early && e.RV <= c.start {
		return 0
	}
	b.Events = append(b.Events, e)
	return len(e.Object.JSON)
}
