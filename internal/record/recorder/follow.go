// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A follower records a timeline with a cursor.
type follower struct {
	r      *resourceRecorder
	tl     *timeline.Timeline
	seeded bool             // the timeline began with the record
	cursor *timeline.Cursor // nil at first
	more   bool
	rv     uint64          // the writer has everything up to here
	at     time.Time       // when that was the head
	held   []history.Event // events of a gap whose end the cursor has not reached
	// compared is what the record was last compared with, and when. Events up to there are
	// observed then, however long the timeline has had them.
	compared history.Moment
}

// run records the timeline until it is closed, or ctx ends. complete reports whether
// everything up to the timeline's end is on disk.
func (f *follower) run(ctx context.Context) (complete bool, err error) {
	tl, w := f.tl, f.r.w
	select {
	case <-tl.Synced():
	case <-ctx.Done():
		return false, nil
	}
	if f.cursor != nil {
		tl.Hold(f.rv)
	}
	defer tl.Hold(0)
	lost := w.loss()
	for {
		err := f.next(ctx)
		switch {
		case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
			return false, nil
		case errors.Is(err, timeline.ErrClosed):
			return f.cursor != nil, w.flush()
		case errors.Is(err, timeline.ErrCompacted):
			err := f.catchUp(ctx)
			switch {
			case ctx.Err() != nil:
				return false, nil
			case errors.Is(err, timeline.ErrClosed):
				return false, w.flush()
			case err != nil:
				return false, err
			}
			continue
		case err != nil:
			return false, err
		case f.more, tl.View().Closed(): // Ready does not fire after the end
			continue
		}
		select {
		case <-f.cursor.Ready():
		case <-lost:
			return false, errDamaged
		case <-ctx.Done():
			// Record what the timeline already has.
			err := f.next(ctx)
			for _, end := range []error{timeline.ErrClosed, timeline.ErrCompacted, context.Cause(ctx)} {
				if errors.Is(err, end) {
					return false, nil
				}
			}
			return false, err
		}
	}
}

// next passes the events after the cursor to the writer. It fails with
// timeline.ErrCompacted if events are missing.
func (f *follower) next(ctx context.Context) error {
	if f.cursor == nil {
		if err := f.start(f.tl.View()); err != nil {
			return err
		}
		f.tl.Hold(f.rv)
	}
	b, err := f.cursor.Next()
	if err != nil {
		return err
	}
	events, at := appendEvents(f.held, b.Events), b.At
	for i := range events {
		if events[i].Object.RV <= f.compared.RV {
			events[i].At = f.compared.At
		}
	}
	if f.cursor.RV() <= f.compared.RV {
		at = f.compared.At
	}
	if f.more = b.More; b.More {
		at = lastAt(events, at)
	}
	return f.take(ctx, events, f.cursor.RV(), at)
}

// start sets the cursor to the RV up to which everything is recorded, provided that
// the timeline continues the record: its RV alone does not show that.
func (f *follower) start(v *timeline.View) (err error) {
	head := f.r.w.position()
	f.rv, f.at = head.RV, head.At
	if !f.r.c.continues(f.tl, v.Epoch()) || f.rv == 0 || f.rv > v.RV {
		return timeline.ErrCompacted
	}
	if !f.seeded {
		f.r.w.silence.clear(time.Time{}) // the timeline has observed what was not recorded
	}
	f.cursor, err = f.tl.WatchFrom(v, f.rv, timeline.Interest{})
	return err
}

// take passes the events up to rv to the writer, those inside gaps as gaps.
func (f *follower) take(ctx context.Context, events []history.Event, rv uint64, at time.Time) error {
	w := f.r.w
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
			// Of the state before the gap, only the time of its last event is known.
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
		if f.r.c.is(diverged) {
			return timeline.ErrCompacted // not a gap
		}
		if err := f.r.s.same(ctx); err != nil {
			return err
		}
		within := upTo(g.To)
		f.rv, f.at = g.To, lastAt(within, at)
		if err := w.gap(within, f.rv, f.at); err != nil {
			return err
		}
	}
	f.rv, f.at = rv, at
	w.setTemplate(view.BookmarkTemplate)
	err := w.add(events, rv, at)
	f.tl.Hold(rv)
	return err
}

// lastAt returns when the last of the events was observed, otherwise if there is none.
func lastAt(events []history.Event, otherwise time.Time) time.Time {
	if n := len(events); n > 0 {
		return events[n-1].At
	}
	return otherwise
}

// catchUp compares the recorded state with one of the timeline's, records the difference,
// and goes on from there.
func (f *follower) catchUp(ctx context.Context) error {
	other := f.otherVersion(ctx)
	v := f.tl.View()
	if v.Closed() {
		return timeline.ErrClosed // the next reflector resumes from the record
	}
	if err := f.r.s.same(ctx); err != nil {
		return err
	}
	f.held = nil
	from := f.meets(v)
	if other { // what the timeline has of before is recorded
		from = v.RV
	}
	state, err := f.tl.AtOf(v, from)
	if err != nil {
		return err
	}
	f.tl.Hold(from)
	list := listOf(history.Form{ListKind: v.ListKind, Item: v.BookmarkTemplate}, from)
	list.Items = slices.Collect(state.All("", ""))
	wasDiverged := f.r.c.divergedFrom(f.tl, v)
	continued, err := f.r.w.take(list, "", wasDiverged, f.r.s.r.opts.Now) // the definition is not known here
	if err != nil {
		return err
	}
	f.r.c.compared(f.tl, v, wasDiverged)
	f.r.log.Info("recorded the state of the cache", "rv", from, "continued", continued)
	f.rv, f.at = from, f.r.w.position().At
	f.compared = history.Moment{RV: v.RV, At: f.at}
	f.cursor, err = f.tl.WatchFrom(v, from, timeline.Interest{})
	return err
}

// meets returns the RV at which the record is compared with a view: the first one from the
// record's head on that the view can continue from. A gap that the comparison leaves ends
// there. If it ended later, the view could continue a client inside the gap, which may have
// a part of the difference.
func (f *follower) meets(v *timeline.View) uint64 {
	rv := max(v.Start, min(f.r.w.position().RV, v.RV))
	if g, in := v.GapAround(rv); in {
		return g.To
	}
	return rv
}

// otherVersion reports whether the record is of another API version, after which this one begins. It
// waits until the timeline, which may be a moment behind, has the last change of that record. After
// a restore of etcd, it does not come to it.
func (f *follower) otherVersion(ctx context.Context) bool {
	last := f.r.w.current()
	span := last.Span()
	if last.Resource() == f.r.id || span.To.RV == 0 {
		return false
	}
	rv := span.From.RV
	if events, err := last.LastEvents(ctx, rv, span.To.RV, 1); err == nil && len(events) > 0 { // else it is damaged
		rv = events[len(events)-1].Object.RV
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	_, _ = f.tl.WaitRV(ctx, rv)
	return true
}
