// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// follow records a timeline until it is closed, or ctx ends.
func (t *track) follow(ctx context.Context, tl *timeline.Timeline) error {
	select {
	case <-tl.Synced():
	case <-ctx.Done():
		return nil
	}
	f, lost := follower{t: t, tl: tl}, t.w.loss()
	for {
		err := f.next()
		switch {
		case errors.Is(err, timeline.ErrClosed):
			return t.w.flush()
		case errors.Is(err, timeline.ErrCompacted):
			if err := f.catchUp(); errors.Is(err, timeline.ErrClosed) {
				return t.w.flush()
			} else if err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case f.more, tl.View().Closed(): // there is no Ready after the end
			continue
		}
		select {
		case <-f.cursor.Ready():
		case <-lost:
			return errAnew
		case <-ctx.Done():
			// What is there already is not left behind.
			if err := f.next(); err != nil && !errors.Is(err, timeline.ErrClosed) && !errors.Is(err, timeline.ErrCompacted) {
				return err
			}
			return nil
		}
	}
}

// A follower is the recorder's place in a timeline.
type follower struct {
	t      *track
	tl     *timeline.Timeline
	cursor *timeline.Cursor // nil at first
	more   bool
	rv     uint64          // up to where the writer has been told
	held   []history.Event // of a gap whose end is yet to come
}

// next tells the writer what there is behind the place. It fails with
// timeline.ErrCompacted when that is not all that happened.
func (f *follower) next() error {
	if f.cursor == nil {
		f.t.p.mu.Lock()
		anew := f.t.p.anew
		f.t.p.mu.Unlock()
		f.rv = f.t.w.position()
		if anew || f.rv == 0 {
			return timeline.ErrCompacted
		}
		cursor, err := f.start(f.tl.View())
		if err != nil {
			return err
		}
		f.cursor = cursor
	}
	b, err := f.cursor.Next()
	if err != nil {
		return err
	}
	f.more = b.More
	return f.take(appendEvents(f.held, b.Events, b.At), f.cursor.RV(), b.At)
}

// start returns a cursor at the place. One that is beyond the view's head is of
// another history.
func (f *follower) start(v *timeline.View) (*timeline.Cursor, error) {
	if f.rv > v.RV {
		return nil, timeline.ErrCompacted
	}
	return f.tl.WatchFrom(v, f.rv, timeline.Interest{})
}

// take tells the writer the events up to rv, those of gaps as such.
func (f *follower) take(events []history.Event, rv uint64, at time.Time) error {
	w := f.t.w
	f.held = nil
	upTo := func(rv uint64) (part []history.Event) {
		n := slices.IndexFunc(events, func(e history.Event) bool { return e.Object.RV > rv })
		if n < 0 {
			n = len(events)
		}
		part, events = events[:n], events[n:]
		return part
	}
	view := f.tl.View()
	for {
		g, ok := view.GapAfter(f.rv)
		if !ok || g.From >= rv {
			break
		}
		if g.From > f.rv {
			if err := w.add(upTo(g.From), g.From, at); err != nil {
				return err
			}
			f.rv = g.From
		}
		if g.To > rv {
			f.held = events
			return nil
		}
		if err := w.gap(upTo(g.To), g.To, at); err != nil {
			return err
		}
		f.rv = g.To
	}
	f.rv = rv
	w.formed(view.BookmarkForm)
	return w.add(events, rv, at)
}

// catchUp compares what is recorded with the timeline's state.
func (f *follower) catchUp() error {
	v := f.tl.View()
	if v.Closed() {
		return timeline.ErrClosed // the own watch goes on from what is recorded
	}
	f.held = nil
	list := listOf(history.Form{ListKind: v.ListKind, Item: v.BookmarkForm}, v.RV)
	list.Items = slices.Collect(v.All("", ""))
	f.t.w.defined("") // the gateway knows, and does not tell
	continued, err := f.t.w.take(list, time.Now())
	if err != nil {
		return err
	}
	f.t.known()
	f.t.log.Info("recorded anew from the state of the cache", "rv", v.RV, "continued", continued)
	f.rv = v.RV
	f.cursor, err = f.tl.WatchFrom(v, v.RV, timeline.Interest{})
	return err
}
