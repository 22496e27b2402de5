// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// batchBytes is about how much of the past is yielded at a time, with what is
// looked at and not yielded.
const batchBytes = 1 << 20

// A pastCursor is a watcher's place in the history of a resource, and in its
// timeline where that has it.
//
//	history   ───────────┬────────────────────── head
//	timeline             start ───────────────── head
//	             place ──▶
//
// It goes on in the timeline as soon as the window has its place, and goes back to
// the history if it falls behind the window: it is late, never cut. Both have the
// same events at the same RVs, so that neither gap nor duplicate comes of it.
type pastCursor struct {
	past   *past
	id     kube.Resource
	in     timeline.Interest
	live   *timeline.Timeline // nil: it ends with the history
	ends   goneError          // why it ends with the history, if that is to be told
	epoch  uint64             // of the timeline; 0 until it has a view
	stream *history.Stream    // nil while the timeline has the place
	cursor *timeline.Cursor   // nil while the history has
	rv     uint64             // the place in the history
	// early is set while the place is one that the history has yet to come to: that
	// may turn out to be inside a gap, where no watch begins.
	early bool

	// Of a watch of the past, not one that has fallen behind:
	pace    *pace     // nil: as fast as the client reads
	printed bool      // rows are printed as of when they were observed
	columns string    // that they are under; "" before the first
	at      time.Time // of the last batch

	reading *reading
	wake    <-chan struct{}
	timer   *time.Timer
	syncing *syncing
}

// A syncing is a wait for what the timeline has to be recorded.
type syncing struct {
	from   uint64 // the place that it began at
	done   chan struct{}
	cancel context.CancelFunc
}

// Close implements source.
func (c *pastCursor) Close() {
	c.settle()
	if c.reading != nil {
		c.reading.close()
	}
	if c.cursor != nil {
		c.cursor.Close()
	}
	if c.syncing != nil {
		c.syncing.cancel()
	}
}

// RV implements source.
func (c *pastCursor) RV() uint64 {
	if c.cursor != nil {
		return c.cursor.RV()
	}
	return c.rv
}

// Ready implements source.
func (c *pastCursor) Ready() <-chan struct{} {
	if c.cursor != nil {
		return c.cursor.Ready()
	}
	return c.wake
}

// now is the clock of the rows that are printed.
func (c *pastCursor) now() time.Time {
	if c.cursor != nil {
		return time.Now()
	}
	return c.at
}

// replayed returns the moment that a replay is at, the zero value if it is not in
// the past any more.
func (c *pastCursor) replayed() time.Time {
	if c.pace == nil {
		return time.Time{}
	}
	return c.pace.now()
}

// Next implements source.
func (c *pastCursor) Next() (timeline.Batch, error) {
	c.settle()
	if c.reading != nil {
		c.reading.resume()
	}
	defer func() {
		if c.reading != nil {
			c.reading.pause()
		}
	}()
	if c.cursor == nil && c.pace == nil && !c.printed {
		if gone, ok := errors.AsType[goneError](c.join()); ok && c.ends == "" {
			return timeline.Batch{}, gone
		}
	}
	if c.cursor != nil {
		b, err := c.cursor.Next()
		if !errors.Is(err, timeline.ErrCompacted) || !c.fallBack() {
			return b, err
		}
	}
	b, err := c.read()
	if err == nil && !b.More && len(b.Events) == 0 {
		return c.atEnd()
	}
	b.More = b.More || c.wake == nil // there is more, or the end to be seen
	return b, err
}

// atEnd goes on when all that is recorded, or due, has been yielded.
func (c *pastCursor) atEnd() (timeline.Batch, error) {
	if c.pace != nil && !c.pace.caughtUp() {
		c.move(c.pace.now())
		if c.wake == nil { // there is no event to wait for
			c.sleep(min(time.Second, max(c.pace.until(time.Now()), 10*time.Millisecond)))
		}
		return timeline.Batch{}, nil
	}
	c.pace = nil
	switch err := c.join(); {
	case err == nil:
		return c.cursor.Next()
	case !errors.Is(err, errNotYet):
		return timeline.Batch{}, err
	}
	return timeline.Batch{}, c.await()
}

// errNotYet: the timeline cannot be gone on with, but may when more is recorded.
var errNotYet = errors.New("the timeline does not have the place")

// join goes on in the timeline.
func (c *pastCursor) join() error {
	if c.ends != "" {
		return c.ends
	}
	if c.live == nil {
		return timeline.ErrClosed
	}
	v, err := c.adopt()
	switch {
	case err != nil:
		return err
	case v == nil:
		return errNotYet
	}
	switch gap, in := v.GapAround(c.rv); {
	case v.Closed():
		return timeline.ErrClosed
	case v.Epoch() != c.epoch:
		return goneError(tooOld(c.rv, v.Start))
	case c.early && in:
		return goneError(tooOld(c.rv, gap.To))
	case in, c.rv < v.Start, !c.early && errors.Is(c.stream.Check(c.rv), history.ErrGap):
		// One that reads its way through a gap has a part of the difference, and
		// the history has the rest.
		return errNotYet
	}
	cursor, err := c.live.WatchFrom(v, c.rv, c.in)
	if err != nil {
		return err
	}
	c.cursor, c.stream, c.early = cursor, nil, false
	if c.reading != nil {
		c.reading.close()
		c.reading = nil
	}
	return nil
}

// adopt returns the timeline's view, nil if there is none yet. It fails with a
// goneError if the timeline has begun another history, of which nothing is recorded
// yet: it would be behind what is.
func (c *pastCursor) adopt() (*timeline.View, error) {
	if c.epoch != 0 {
		return c.live.View(), nil
	}
	recorded := c.stream.Head().RV // before the view, which is ahead of it
	v := c.live.View()
	switch {
	case v == nil:
	case v.RV < recorded:
		return nil, goneError(tooOld(c.rv, v.Start))
	default:
		c.epoch = v.Epoch()
	}
	return v, nil
}

// fallBack goes back to the history, if that has the place.
func (c *pastCursor) fallBack() bool {
	v, rv := c.live.View(), c.cursor.RV()
	if _, in := v.GapAround(rv); in || v.Epoch() != c.epoch {
		return false
	}
	st := c.past.newest(c.id)
	if st == nil {
		return false
	}
	err := st.Check(rv)
	early := errors.Is(err, history.ErrFuture)
	if err != nil && !early {
		return false
	}
	c.cursor.Close()
	c.cursor, c.stream, c.rv, c.early = nil, st, rv, early
	return true
}

// settle ends what the last Next had to wait for.
func (c *pastCursor) settle() {
	c.wake = nil
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// sleep has the cursor be ready in a while.
func (c *pastCursor) sleep(d time.Duration) {
	wake := make(chan struct{})
	c.wake, c.timer = wake, time.AfterFunc(d, func() { close(wake) })
}

// await has the cursor be ready when the timeline has a first view, or what it has
// is recorded. It fails when that is not to be.
func (c *pastCursor) await() error {
	if c.live.View() == nil {
		c.wake = c.live.Synced()
		return nil
	}
	if s := c.syncing; s != nil {
		select {
		case <-s.done:
			s.cancel()
			c.syncing, c.wake = nil, s.done
			v := c.live.View()
			gap, in := v.GapAround(c.rv)
			if c.rv == s.from && c.stream.Head().RV <= c.rv && (in || c.rv < v.Start) {
				return goneError(tooOld(c.rv, max(v.Start, gap.To))) // nothing more is recorded
			}
			return nil
		default:
			c.wake = s.done
			return nil
		}
	}
	ctx, end, ok := c.past.cache.begin()
	if !ok {
		return errDraining
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &syncing{from: c.rv, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer end()
		defer close(s.done)
		_ = c.past.sync(ctx, c.id) // what comes of it shows in the history
	}()
	c.syncing, c.wake = s, s.done
	return nil
}
