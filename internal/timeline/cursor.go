// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"time"
)

// batchBytes is the size at which a batch ends; it holds at least one event.
const batchBytes = 1 << 20

// A Cursor is one watcher's position in a timeline. It is for one goroutine.
type Cursor struct {
	t      *Timeline
	start  uint64 // the RV that it was opened at
	rv     uint64 // every event ≤ rv that the interest selects has been yielded
	seq    uint64 // the sequence number of the next event to read
	epoch  uint64
	future bool // the start is above the head

	changed <-chan struct{} // of the view that Next loaded last
	watcher *watcher        // nil if it watches everything

	place int   // in waiting.cursors, from 1; 0 if it is not there
	waker Waker // then
}

// A Batch is the result of one call of Next.
type Batch struct {
	// Events are shared and must not be changed.
	Events []*Event
	// At is when the view that the events were read from was published. It may
	// be later than Event.At.
	At time.Time
	// More is set when Next may return more at once.
	More bool
}

// Watch returns a cursor that yields the events above rv that the interest
// selects (T4). The RV may be above the head. It fails with [ErrNotReady],
// [ErrClosed] or [ErrCompacted]. The caller closes the cursor.
func (t *Timeline) Watch(rv uint64, in Interest) (*Cursor, error) {
	v := t.View()
	if v == nil {
		return nil, ErrNotReady
	}
	return t.WatchFrom(v, rv, in)
}

// WatchFrom is Watch on a view that the caller has loaded, so that its snapshot
// and the cursor are of the same moment.
func (t *Timeline) WatchFrom(v *View, rv uint64, in Interest) (*Cursor, error) {
	switch {
	case v.closed:
		return nil, ErrClosed
	case !v.CanStart(rv):
		return nil, fmt.Errorf("%w: %d, the window begins at %d", ErrCompacted, rv, v.Start)
	}
	c := &Cursor{
		t: t, start: rv, rv: rv, seq: v.first + uint64(v.after(rv)), epoch: v.epoch, future: rv > v.RV,
		changed: v.changed,
	}
	if in.Match != nil {
		c.watcher = newWatcher(in)
		t.interests.add(c.watcher)
	}
	return c, nil
}

// Close releases the cursor.
func (c *Cursor) Close() {
	if c.watcher != nil {
		c.t.interests.remove(c.watcher)
	} else {
		c.t.waiting.remove(c)
	}
}

// RV returns the cursor's RV: every event ≤ it has been yielded, so it may be
// sent as a bookmark (T5). Next moves it to the head even if it yields nothing.
func (c *Cursor) RV() uint64 { return c.rv }

// Ready returns a channel that is ready to receive when Next may have more. It
// may be another channel after each Next.
func (c *Cursor) Ready() <-chan struct{} {
	if c.watcher != nil {
		return c.watcher.wake
	}
	return c.changed
}

// Next returns the events after the cursor up to the head, or up to the size of
// a batch, and moves the cursor past them; it does not wait. It fails with
// [ErrCompacted] when the log no longer holds the next event, or when a start
// above the head has come to be inside a gap, and with [ErrClosed] at the end of
// a timeline that has ended.
func (c *Cursor) Next() (Batch, error) {
	if c.watcher != nil {
		return c.nextSelected()
	}
	v := c.t.View()
	c.changed = v.changed
	if err := c.check(v, c.seq); err != nil {
		return Batch{}, err
	}
	events := v.log[c.seq-v.first:]
	if c.future {
		n := 0
		for n < len(events) && events[n].RV <= c.start {
			n++
		}
		events = events[n:]
		c.seq += uint64(n)
		c.future = v.RV < c.start
	}
	head, b := v.RV, Batch{At: v.At}
	if n := batchLen(events); n < len(events) {
		events, head, b.More = events[:n], events[n-1].RV, true
	}
	// A copy: a slice of the log would keep all of its array in memory (T10).
	b.Events = append(b.Events, events...)
	c.seq += uint64(len(events))
	c.rv = max(c.rv, head)
	if len(events) == 0 && v.closed {
		return Batch{}, ErrClosed
	}
	b.More = b.More || v.closed // the error; no later view will wake the watcher
	return b, nil
}

// check fails if the events from seq on do not continue those that the cursor
// has yielded.
func (c *Cursor) check(v *View, seq uint64) error {
	if v.epoch != c.epoch || seq < v.first || c.future && v.inGap(c.start) {
		return fmt.Errorf("%w: %d, the window begins at %d", ErrCompacted, c.rv, v.Start)
	}
	return nil
}

// batchLen returns how many of the events to yield. Events at one RV are not split
// (T5).
func batchLen(events []*Event) int {
	size := 0
	for i, e := range events {
		if size += len(e.Object.JSON); size > batchBytes {
			n := i + 1
			for n < len(events) && events[n].RV == e.RV {
				n++
			}
			return n
		}
	}
	return len(events)
}
