// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"time"
)

// batchBytes is about how much a cursor yields at a time, at least one event.
const batchBytes = 1 << 20

// A Cursor is one watcher's place in a timeline. It is for one goroutine.
type Cursor struct {
	t     *Timeline
	start uint64 // where it began
	rv    uint64 // everything ≤ rv has been yielded, or was not asked for
	seq   uint64 // the sequence number of the next event to look at
	epoch uint64
	// early is set while the start is in the future.
	early bool

	changed <-chan struct{} // of the view that Next saw last
	watcher *watcher        // of a selective cursor
}

// A Batch is what a cursor yields at a time.
type Batch struct {
	// Events are shared and must not be changed.
	Events []*Event
	// At is when the view was published that the events were taken from: the
	// newest one, which may have others than they. See Event.At.
	At time.Time
	// More is set when there is more to be had at once.
	More bool
}

// Watch returns a cursor that yields the events above rv that the interest is
// in (T4). The RV may be in the future. It fails with [ErrNotReady],
// [ErrClosed] or [ErrCompacted]. The caller closes the cursor.
func (t *Timeline) Watch(rv uint64, in Interest) (*Cursor, error) {
	v := t.View()
	if v == nil {
		return nil, ErrNotReady
	}
	return t.WatchFrom(v, rv, in)
}

// WatchFrom is Watch against a view the caller has already loaded, so that a
// snapshot of it and the cursor are of one moment.
func (t *Timeline) WatchFrom(v *View, rv uint64, in Interest) (*Cursor, error) {
	switch {
	case v.closed:
		return nil, ErrClosed
	case !v.CanStart(rv):
		return nil, fmt.Errorf("%w: %d, the window begins at %d", ErrCompacted, rv, v.Start)
	}
	c := &Cursor{
		t: t, start: rv, rv: rv, seq: v.first + uint64(v.after(rv)), epoch: v.epoch, early: rv > v.RV,
		changed: v.changed,
	}
	if in.Match != nil {
		c.watcher = newWatcher(in)
		t.index.add(c.watcher)
	}
	return c, nil
}

// Close ends the cursor's use.
func (c *Cursor) Close() {
	if c.watcher != nil {
		c.t.index.remove(c.watcher)
	}
}

// RV returns the cursor's place: every event ≤ it has been yielded, so that it
// may be sent as a bookmark (T5). A place at the head moves by Next, also where
// there is nothing to yield.
func (c *Cursor) RV() uint64 { return c.rv }

// Ready returns a channel that can be received from when Next, which had no
// more, may have something. It is another one after each Next.
func (c *Cursor) Ready() <-chan struct{} {
	if c.watcher != nil {
		return c.watcher.wake
	}
	return c.changed
}

// Next returns what there is behind the cursor's place up to the head and moves
// the cursor there; it does not wait. It fails with [ErrCompacted] when the log
// no longer holds the place, or a gap came over a start in the future, and with
// [ErrClosed] at the end of a timeline that has ended.
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
	if c.early {
		n := 0
		for n < len(events) && events[n].RV <= c.start {
			n++
		}
		events = events[n:]
		c.seq += uint64(n)
		c.early = v.RV < c.start
	}
	head, b := v.RV, Batch{At: v.At}
	if n := batch(events); n < len(events) {
		events, head, b.More = events[:n], events[n-1].RV, true
	}
	// A copy: a reader that is stuck with a part of the log would keep all of it.
	b.Events = append(b.Events, events...)
	c.seq += uint64(len(events))
	c.rv = max(c.rv, head)
	if len(events) == 0 && v.closed {
		return Batch{}, ErrClosed
	}
	return b, nil
}

// check fails if the events from seq on are not those behind the cursor's
// place.
func (c *Cursor) check(v *View, seq uint64) error {
	if v.epoch != c.epoch || seq < v.first || c.early && v.inGap(c.start) {
		return fmt.Errorf("%w: %d, the window begins at %d", ErrCompacted, c.rv, v.Start)
	}
	return nil
}

// batch returns how many of the events to yield: none split between those of
// one RV (T5).
func batch(events []*Event) int {
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
