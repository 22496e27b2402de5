// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"slices"
)

// batchBytes is about how much a cursor yields at a time, at least one event.
const batchBytes = 1 << 20

// batch returns how many of the events to yield.
func batch(events []Event) int {
	size := 0
	for i := range events {
		if size += len(events[i].Object.JSON); size > batchBytes {
			n := i + 1
			for n < len(events) && events[n].RV == events[i].RV { // T5
				n++
			}
			return n
		}
	}
	return len(events)
}

// A Cursor is one watcher's place in a timeline. It is for one goroutine. It
// needs no closing.
type Cursor struct {
	t     *Timeline
	start uint64 // where it began
	rv    uint64 // everything ≤ rv has been yielded, or was not asked for
	seq   uint64 // the sequence number of the next event
	epoch uint64
	// early is set while the start is in the future.
	early bool
}

// Watch returns a cursor that yields the events above rv (T4). The RV may be
// in the future. It fails with [ErrNotReady], [ErrClosed] or [ErrCompacted].
func (t *Timeline) Watch(rv uint64) (*Cursor, error) {
	v := t.View()
	if v == nil {
		return nil, ErrNotReady
	}
	return t.WatchFrom(v, rv)
}

// WatchFrom is Watch against a view the caller has already loaded, so that a
// snapshot of it and the cursor are of one moment.
func (t *Timeline) WatchFrom(v *View, rv uint64) (*Cursor, error) {
	switch {
	case v.closed:
		return nil, ErrClosed
	case !v.CanStart(rv):
		return nil, fmt.Errorf("%w: %d, the window begins at %d", ErrCompacted, rv, v.Start)
	}
	return &Cursor{
		t: t, start: rv, rv: rv, seq: v.first + uint64(v.after(rv)), epoch: v.epoch, early: rv > v.RV,
	}, nil
}

// RV returns the cursor's place: every event ≤ it has been yielded, so that it
// may be sent as a bookmark (T5).
func (c *Cursor) RV() uint64 { return c.rv }

// Next returns the events behind the cursor's place up to the head of the
// current view, and that view; it moves the cursor there. It does not wait:
// without events, wait on the view's Changed. It fails with [ErrCompacted] when
// the log no longer holds the place, or a gap came over a start in the future,
// and with [ErrClosed] at the end of a
// timeline that has ended. The events are shared and must not be changed.
func (c *Cursor) Next() ([]Event, *View, error) {
	v := c.t.View()
	if v.epoch != c.epoch || c.seq < v.first || c.early && v.inGap(c.start) {
		return nil, v, fmt.Errorf("%w: %d, the window begins at %d", ErrCompacted, c.rv, v.Start)
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
	head := v.RV
	if n := batch(events); n < len(events) {
		events, head = events[:n], events[n-1].RV
	}
	// A copy: a reader that is stuck with a part of the log would keep all of it.
	events = slices.Clone(events)
	c.seq += uint64(len(events))
	c.rv = max(c.rv, head)
	if len(events) == 0 && v.closed {
		return nil, v, ErrClosed
	}
	return events, v, nil
}
