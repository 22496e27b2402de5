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
	defer tl.Hold(0)
	f, lost := follower{t: t, tl: tl}, t.w.loss()
	for {
		err := f.next(ctx)
		switch {
		case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
			return nil
		case errors.Is(err, timeline.ErrClosed):
			return t.w.flush()
		case errors.Is(err, timeline.ErrCompacted):
			err := f.catchUp(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, timeline.ErrClosed):
				return t.w.flush()
			case err != nil:
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
			err := f.next(ctx)
			for _, end := range []error{timeline.ErrClosed, timeline.ErrCompacted, context.Cause(ctx)} {
				if errors.Is(err, end) {
					return nil
				}
			}
			return err
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
	at     time.Time       // when that was the head
	held   []history.Event // of a gap whose end is yet to come
}

// next tells the writer what there is behind the place. It fails with
// timeline.ErrCompacted when that is not all that happened.
func (f *follower) next(ctx context.Context) error {
	if f.cursor == nil {
		if err := f.start(f.tl.View()); err != nil {
			return err
		}
	}
	b, err := f.cursor.Next()
	if err != nil {
		return err
	}
	events, at := appendEvents(f.held, b.Events), b.At
	if f.more = b.More; b.More {
		at = lastAt(events, at)
	}
	return f.take(ctx, events, f.cursor.RV(), at)
}

// start goes to the place up to which all is recorded, if the timeline continues
// that. Its RV alone does not tell.
func (f *follower) start(v *timeline.View) (err error) {
	f.t.p.mu.Lock()
	anew, joined := f.t.p.anew, f.t.p.joined
	f.t.p.mu.Unlock()
	head := f.t.w.position()
	f.rv, f.at = head.RV, head.At
	if anew || joined != v.Epoch() || f.rv == 0 || f.rv > v.RV {
		return timeline.ErrCompacted
	}
	f.tl.Hold(f.rv)
	f.cursor, err = f.tl.WatchFrom(v, f.rv, timeline.Interest{})
	return err
}

// take tells the writer the events up to rv, those of gaps as such.
func (f *follower) take(ctx context.Context, events []history.Event, rv uint64, at time.Time) error {
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
			// When the head was there is not known but for its last event.
			before := upTo(g.From)
			f.rv, f.at = g.From, lastAt(before, f.at)
			if err := w.add(before, f.rv, f.at); err != nil {
				return err
			}
		}
		if g.To > rv {
			f.held = events
			return nil
		}
		if f.t.diverged() {
			return timeline.ErrCompacted // it is no gap
		}
		if err := f.t.s.same(ctx); err != nil {
			return err
		}
		behind := upTo(g.To)
		f.rv, f.at = g.To, lastAt(behind, at)
		if err := w.gap(behind, f.rv, f.at); err != nil {
			return err
		}
	}
	if rv > f.rv {
		f.t.sure()
	}
	f.rv, f.at = rv, at
	w.formed(view.BookmarkForm)
	err := w.add(events, rv, at)
	f.tl.Hold(rv)
	return err
}

// lastAt returns when the last of the events was observed, or else what is given.
func lastAt(events []history.Event, otherwise time.Time) time.Time {
	if n := len(events); n > 0 {
		return events[n-1].At
	}
	return otherwise
}

// catchUp compares what is recorded with the timeline's state.
func (f *follower) catchUp(ctx context.Context) error {
	v := f.tl.View()
	if v.Closed() {
		return timeline.ErrClosed // the own watch goes on from what is recorded
	}
	at := time.Now()
	if err := f.t.s.same(ctx); err != nil {
		return err
	}
	f.held = nil
	list := listOf(history.Form{ListKind: v.ListKind, Item: v.BookmarkForm}, v.RV)
	list.Items = slices.Collect(v.All("", ""))
	continued, err := f.t.w.take(list, "", f.t.diverged(), at) // the gateway knows which definition, and does not tell
	if err != nil {
		return err
	}
	f.t.p.update(func() {
		p := f.t.p
		if p.timeline == f.tl { // and the lease has not ended
			p.anew, p.other, p.joined = false, false, v.Epoch()
		}
		p.sure = !p.other
	})
	f.t.log.Info("recorded anew from the state of the cache", "rv", v.RV, "continued", continued)
	f.rv, f.at = v.RV, at
	f.tl.Hold(v.RV)
	f.cursor, err = f.tl.WatchFrom(v, v.RV, timeline.Interest{})
	return err
}
