// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// printedSpan is how far apart events are at the most that are printed as of one
// time.
const printedSpan = time.Second

// read returns what is next in the history. Events of one RV stay together (T5).
func (c *pastCursor) read() (b timeline.Batch, err error) {
	size := 0
	for {
		e, err := c.peek()
		if errors.Is(err, history.ErrBefore) || errors.Is(err, history.ErrGap) {
			return b, goneError(err.Error()) // retention has overtaken it
		}
		if err != nil || e == nil {
			return b, err
		}
		if rv := e.Object.RV; rv > c.rv {
			switch {
			case c.pace != nil && e.At.After(c.pace.now()):
				c.sleep(c.pace.until(e.At))
				return b, nil
			case size >= batchBytes, c.printed && size > 0 && e.At.Sub(c.at) >= printedSpan:
				b.More = true
				return b, nil
			}
		}
		if size == 0 {
			c.at = e.At
		}
		size += len(e.Object.JSON)
		c.reading.skip()
		c.rv = e.Object.RV
		if event := c.event(e); event != nil {
			b.Events = append(b.Events, event)
		}
	}
}

// event returns what an event of the past is in a timeline, nil if it does not
// concern the watcher.
func (c *pastCursor) event(e *history.Event) *timeline.Event {
	event := &timeline.Event{Type: e.Type, RV: e.Object.RV, Object: e.Object, Prev: e.Prev, Inferred: e.Inferred}
	if c.printed {
		event.Object, event.Prev = c.aligned(e.Object), c.aligned(e.Prev)
	}
	if _, _, ok := c.in.Seen(event); !ok {
		return nil
	}
	return event
}

// aligned returns an object, which may be nil, with its row under the columns of
// the first one.
func (c *pastCursor) aligned(o *scan.Object) *scan.Object {
	if o == nil {
		return nil
	}
	one := []*scan.Object{o}
	c.alignAll(one)
	return one[0]
}

// alignAll has the rows of objects be under the columns of what was printed first.
func (c *pastCursor) alignAll(items []*scan.Object) {
	if c.columns == "" {
		c.columns = newestColumns(items, "")
	}
	align(items, c.columns)
}

// peek returns the next event that is recorded, nil if there is none.
func (c *pastCursor) peek() (*history.Event, error) {
	for {
		if c.reading == nil {
			to := c.stream.Head().RV
			if c.early && to >= c.rv {
				if err := c.stream.Check(c.rv); err != nil {
					return nil, err
				}
				c.early = false
			}
			if to <= c.rv {
				return nil, nil
			}
			c.reading = newReading(c.stream, c.rv, to)
		}
		e, ok, err := c.reading.peek()
		if e != nil || err != nil {
			return e, err
		}
		if ok { // the end
			c.rv = max(c.rv, c.reading.to)
		}
		c.reading.close()
		c.reading = nil
	}
}

// move moves the place of a replay to where the head was at a moment, which is
// before the next event.
func (c *pastCursor) move(to time.Time) {
	m, err := c.stream.At(to)
	if err != nil || m.RV <= c.rv {
		return
	}
	if e, err := c.peek(); err == nil && e != nil {
		m.RV = min(m.RV, e.Object.RV-1)
	}
	c.rv = max(c.rv, m.RV)
}
