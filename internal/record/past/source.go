// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// batchBytes bounds the events that are read from the history for one batch,
// including those that do not match. The last event may exceed it.
const batchBytes = 1 << 20

// A Source is a watcher's position in the history of a resource, or in its timeline
// if the timeline's window includes the position.
//
//	history   ───────────┬────────────────────── head
//	timeline             start ───────────────── head
//	          position ──▶
//
// The source joins the timeline as soon as the window includes its position, and
// falls back to the history when it lags behind the window: a slow watcher is late,
// but does not end. History and timeline have the same events at the same RVs, so
// the moves between them lose and repeat nothing.
type Source struct {
	past   *Past
	id     kube.Resource
	in     timeline.Interest
	live   *timeline.Timeline  // nil if the source ends at the end of the history
	ends   status.ExpiredError // the error at the end of the history; "" for none
	epoch  uint64              // of the timeline; 0 until it has a view
	stream *history.Stream     // nil while the source is in the timeline
	cursor *timeline.Cursor    // nil while the source is in the history
	rv     uint64              // the position in the history
	// ahead is set while the position is after the head of the history. When the
	// history reaches it, the position may be inside a gap, where no watch can begin.
	ahead bool

	// Only in a watch of the past, not in one that has fallen back:
	clock   *replayClock // nil if this is no replay
	printed bool         // rows are printed as of the time they were observed
	columns string       // of the rows; "" before the first
	at      time.Time    // of the last batch

	reader  *eventReader
	wake    <-chan struct{}
	timer   *time.Timer
	syncing *syncing
}

// WatchOptions select the events of a watch of the past.
type WatchOptions struct {
	Interest timeline.Interest
	// From is the RV after which the watch begins; 0 for the RV of the state.
	From uint64
	// Table is set if the objects are written as rows of Tables.
	Table bool
}

// Watch returns a source of the events after a state. It ends at the end of the
// history unless [Source.Join] is called.
func (p *Past) Watch(id kube.Resource, m State, o WatchOptions) (*Source, error) {
	s := &Source{past: p, id: id, in: o.Interest, stream: m.Stream, rv: m.RV, printed: o.Table, at: m.At}
	switch {
	case o.From == 0, o.From == m.RV:
	case m.Newest && o.From > m.Stream.Head().RV: // without events until the head passes From
		s.rv, s.ahead, s.printed = o.From, true, false
	default:
		if err := m.Stream.Check(o.From); err != nil {
			return nil, err
		}
		s.rv, s.at = o.From, time.Time{}
	}
	if !m.Newest {
		s.ends = status.ExpiredError(fmt.Sprintf("too old resource version: after %d the record of %s begins again", m.Stream.Head().RV, id.GroupResource()))
	}
	return s, nil
}

// Join makes a watch of the newest epoch continue in the timeline. It fails with a
// status.ExpiredError if the timeline has begun a new epoch.
func (s *Source) Join(live *timeline.Timeline) error {
	s.live = live
	_, err := s.adopt()
	return err
}

// Start must be called before the first Next of a watch of the past. With a speed the
// source replays the events at that multiple of real time; with 0 it yields them as
// fast as they are read.
func (s *Source) Start(ctx context.Context, speed float64) (err error) {
	switch {
	case speed > 0:
		s.replay(speed)
	case s.printed && s.at.IsZero():
		s.at, err = s.stream.TimeOf(ctx, s.rv)
	}
	return err
}

// replay makes the source a replay that begins at its moment. If its moment is not
// known, the replay begins at the time of the first event.
func (s *Source) replay(speed float64) {
	from := s.at
	if from.IsZero() {
		from = s.past.Now()
		if e, err := s.peek(); err == nil && e != nil {
			from = e.At
		}
		s.at = from
	}
	s.clock = &replayClock{speed: speed, from: from, began: s.past.Now(), present: s.past.Now}
}

// Follow returns a source that continues from a cursor of a timeline, and falls back
// to the history when it lags. It returns nil if the resource is not recorded.
func (p *Past) Follow(id kube.Resource, live *timeline.Timeline, v *timeline.View, cursor *timeline.Cursor, in timeline.Interest) *Source {
	if !p.Records(id) {
		return nil
	}
	return &Source{past: p, id: id, in: in, live: live, epoch: v.Epoch(), cursor: cursor}
}

// Resume returns a source for a replay, or for a watch from an RV that has left the
// timeline's window. It returns nil if the RV is not recorded. The error, if any,
// says why; it is a status.ExpiredError if the RV is inside a gap.
func (p *Past) Resume(ctx context.Context, id kube.Resource, live *timeline.Timeline, v *timeline.View, rv uint64, in timeline.Interest) (*Source, error) {
	st, err := p.Holding(ctx, id, live, v, rv)
	if errors.Is(err, history.ErrGap) {
		return nil, status.ExpiredError(err.Error())
	}
	if st == nil {
		return nil, err
	}
	return &Source{past: p, id: id, in: in, live: live, epoch: v.Epoch(), stream: st, rv: rv}, nil
}

// A syncing waits until the timeline's events are recorded.
type syncing struct {
	from   uint64 // the position when it began
	done   chan struct{}
	cancel context.CancelFunc
}

// Close ends the source.
func (s *Source) Close() {
	s.settle()
	if s.reader != nil {
		s.reader.close()
	}
	if s.cursor != nil {
		s.cursor.Close()
	}
	if s.syncing != nil {
		s.syncing.cancel()
	}
}

// RV returns the position: every event up to it was yielded (T5).
func (s *Source) RV() uint64 {
	if s.cursor != nil {
		return s.cursor.RV()
	}
	return s.rv
}

// Ready returns a channel that becomes ready when Next may have more events. Each
// call of Next replaces it.
func (s *Source) Ready() <-chan struct{} {
	if s.cursor != nil {
		return s.cursor.Ready()
	}
	return s.wake
}

// Now returns the time as of which rows are printed.
func (s *Source) Now() time.Time {
	if s.cursor != nil {
		return s.past.Now()
	}
	return s.at
}

// Replayed returns the moment that a replay has reached. It is zero if this is no
// replay, or if the replay has reached the present.
func (s *Source) Replayed() time.Time {
	if s.clock == nil {
		return time.Time{}
	}
	return s.clock.now()
}

// Live reports whether the source is in the timeline.
func (s *Source) Live() bool { return s.cursor != nil }

// Next returns the events after the position, and moves the position. It does not
// wait for new events. A batch of events of the past has no time.
func (s *Source) Next() (timeline.Batch, error) {
	s.settle()
	if s.reader != nil {
		s.reader.resume()
	}
	defer func() {
		if s.reader != nil {
			s.reader.pause()
		}
	}()
	if s.cursor == nil && s.clock == nil && !s.printed {
		if gone, ok := errors.AsType[status.ExpiredError](s.join()); ok && s.ends == "" {
			return timeline.Batch{}, gone
		}
	}
	if s.cursor != nil {
		b, err := s.cursor.Next()
		if !errors.Is(err, timeline.ErrCompacted) || !s.fallBack() {
			return b, err
		}
	}
	b, err := s.read()
	if err == nil && !b.More && len(b.Events) == 0 {
		return s.atEnd()
	}
	b.More = b.More || s.wake == nil // the next call returns more events, or finds the end
	return b, err
}

// atEnd is Next after all events that are recorded, or due in the replay, were
// yielded.
func (s *Source) atEnd() (timeline.Batch, error) {
	if s.clock != nil && !s.clock.caughtUp() {
		s.move(s.clock.now())
		if s.wake == nil { // no further event is recorded
			s.sleep(min(time.Second, max(s.clock.until(s.past.Now()), 10*time.Millisecond)))
		}
		return timeline.Batch{}, nil
	}
	s.clock = nil
	switch err := s.join(); {
	case err == nil:
		return s.cursor.Next()
	case !errors.Is(err, errNotYet):
		return timeline.Batch{}, err
	}
	return timeline.Batch{}, s.await()
}

// errNotYet: the timeline's window does not include the position, but may do so when
// more is recorded.
var errNotYet = errors.New("the position is outside the timeline's window")

// join moves the source to the timeline.
func (s *Source) join() error {
	if s.ends != "" {
		return s.ends
	}
	if s.live == nil {
		return timeline.ErrClosed
	}
	v, err := s.adopt()
	switch {
	case err != nil:
		return err
	case v == nil:
		return errNotYet
	}
	switch gap, in := v.GapAround(s.rv); {
	case v.Closed():
		return timeline.ErrClosed
	case v.Epoch() != s.epoch:
		return status.ExpiredError(status.TooOld(s.rv, v.Start))
	case s.ahead && in:
		return status.ExpiredError(status.TooOld(s.rv, gap.To))
	case in, s.rv < v.Start, !s.ahead && errors.Is(s.stream.Check(s.rv), history.ErrGap):
		// Inside a gap the source has yielded some of the inferred events; the rest
		// has to come from the history.
		return errNotYet
	}
	cursor, err := s.live.WatchFrom(v, s.rv, s.in)
	if err != nil {
		return err
	}
	s.cursor, s.stream, s.ahead = cursor, nil, false
	if s.reader != nil {
		s.reader.close()
		s.reader = nil
	}
	return nil
}

// adopt returns the timeline's view, nil if there is none yet, or if it is not known
// yet whether the timeline continues the stream. It fails with a status.ExpiredError if
// the timeline continues another one.
func (s *Source) adopt() (*timeline.View, error) {
	v := s.live.View()
	if s.epoch != 0 || v == nil {
		return v, nil
	}
	switch st := s.past.continued(s.id, s.live, v.Epoch()); {
	case st == nil:
		return nil, nil
	case st.Epoch() != s.stream.Epoch():
		return nil, status.ExpiredError(status.TooOld(s.rv, v.Start))
	}
	s.epoch = v.Epoch()
	return v, nil
}

// fallBack moves the source to the history. It reports whether the history has the
// position.
func (s *Source) fallBack() bool {
	v, rv := s.live.View(), s.cursor.RV()
	if _, in := v.GapAround(rv); in || v.Epoch() != s.epoch {
		return false
	}
	st := s.past.continued(s.id, s.live, s.epoch)
	if st == nil {
		return false
	}
	err := st.Check(rv)
	ahead := errors.Is(err, history.ErrFuture)
	if err != nil && !ahead {
		return false
	}
	s.cursor.Close()
	s.cursor, s.stream, s.rv, s.ahead = nil, st, rv, ahead
	return true
}

// settle drops the channel and the timer of the last Next.
func (s *Source) settle() {
	s.wake = nil
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// sleep makes the source ready after a time.
func (s *Source) sleep(d time.Duration) {
	wake := make(chan struct{})
	s.wake, s.timer = wake, time.AfterFunc(d, func() { close(wake) })
}

// await makes the source ready when the timeline has its first view, or when the
// timeline's events are recorded. It fails if that cannot happen.
func (s *Source) await() error {
	if s.live.View() == nil {
		s.wake = s.live.Synced()
		return nil
	}
	if sync := s.syncing; sync != nil {
		select {
		case <-sync.done:
			sync.cancel()
			s.syncing, s.wake = nil, sync.done
			v, err := s.adopt()
			switch {
			case err != nil:
				return err
			case v == nil: // the timeline does not continue what is recorded
				return status.ExpiredError(status.TooOld(s.rv, s.live.View().Start))
			}
			gap, in := v.GapAround(s.rv)
			if s.rv == sync.from && s.stream.Head().RV <= s.rv && (in || s.rv < v.Start) {
				return status.ExpiredError(status.TooOld(s.rv, max(v.Start, gap.To))) // nothing new was recorded
			}
			return nil
		default:
			s.wake = sync.done
			return nil
		}
	}
	ctx, end, ok := s.past.background.Begin()
	if !ok {
		return upstream.ErrShutdown
	}
	ctx, cancel := context.WithCancel(ctx)
	sync := &syncing{from: s.rv, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer end()
		defer close(sync.done)
		_ = s.past.Sync(ctx, s.id) // await looks at the history's head instead
	}()
	s.syncing, s.wake = sync, sync.done
	return nil
}
