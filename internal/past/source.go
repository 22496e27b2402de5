// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/status"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
)

// batchBytes is about how much of the past is read for a batch, events that do not
// match included.
const batchBytes = 1 << 20

// A Source is a watcher's position in the history of a resource, and in its timeline
// where that has it.
//
//	history   ───────────┬────────────────────── head
//	timeline             start ───────────────── head
//	          position ──▶
//
// It goes on in the timeline as soon as the window has its position, and falls back
// to the history when it lags behind the window: it is late, never cut. Both have
// the same events at the same RVs, so that there is neither a gap nor a duplicate.
type Source struct {
	past   *Past
	id     kube.Resource
	in     timeline.Interest
	live   *timeline.Timeline  // nil: it ends with the history
	ends   status.ExpiredError // why it ends with the history; "" if it ends without an error
	epoch  uint64              // of the timeline; 0 until it has a view
	stream *history.Stream     // nil while the timeline has the position
	cursor *timeline.Cursor    // nil while the history has it
	rv     uint64              // the position in the history
	// ahead is set while the history has yet to reach the position: that may turn
	// out to be inside a gap, where no watch begins.
	ahead bool

	// Of a watch of the past, not of one that has fallen behind:
	clock   *replayClock // nil: as fast as the client reads
	printed bool         // rows are printed as of when they were observed
	columns string       // of the rows; "" before the first
	at      time.Time    // of the last batch

	reader  *eventReader
	wake    <-chan struct{}
	timer   *time.Timer
	syncing *syncing
}

// WatchOptions say what a watch of the past is to yield.
type WatchOptions struct {
	Interest timeline.Interest
	// From is the RV that the watch goes on from; 0 for that of the state.
	From uint64
	// Table is set if rows of Tables are wanted.
	Table bool
}

// Watch returns the events that followed a state. It ends with the history unless
// [Source.Join] is called.
func (p *Past) Watch(id kube.Resource, m State, o WatchOptions) (*Source, error) {
	s := &Source{past: p, id: id, in: o.Interest, stream: m.Stream, rv: m.RV, printed: o.Table, at: m.At}
	switch {
	case o.From == 0, o.From == m.RV:
	case m.Newest && o.From > m.Stream.Head().RV: // it opens, and is silent until then
		s.rv, s.ahead, s.printed = o.From, true, false
	default:
		if err := m.Stream.Check(o.From); err != nil {
			return nil, err
		}
		s.rv, s.at = o.From, time.Time{}
	}
	if !m.Newest {
		s.ends = status.ExpiredError(fmt.Sprintf("too old resource version: after %d the cluster's history began again", m.Stream.Head().RV))
	}
	return s, nil
}

// Join makes a watch of the newest epoch go on in the timeline. It fails with a
// status.ExpiredError if the timeline has begun another history.
func (s *Source) Join(live *timeline.Timeline) error {
	s.live = live
	_, err := s.adopt()
	return err
}

// Start is to be called before the first Next of a watch of the past. speed is that
// of a replay in times real time; 0 yields events as fast as they are read.
func (s *Source) Start(speed float64) {
	switch {
	case speed > 0:
		s.replay(speed)
	case s.printed && s.at.IsZero():
		s.at = TimeOf(s.stream, s.rv)
	}
}

// replay makes a source a replay, from its moment or, if that is not known, from the
// first event.
func (s *Source) replay(speed float64) {
	from := s.at
	if from.IsZero() {
		from = time.Now()
		if e, err := s.peek(); err == nil && e != nil {
			from = e.At
		}
		s.at = from
	}
	s.clock = &replayClock{speed: speed, from: from, began: time.Now()}
}

// Follow returns a source that goes on from a cursor of a timeline, and falls back
// to the history when it lags. It returns nil if the resource is not recorded.
func (p *Past) Follow(id kube.Resource, live *timeline.Timeline, v *timeline.View, cursor *timeline.Cursor, in timeline.Interest) *Source {
	if p.Newest(id) == nil {
		return nil
	}
	return &Source{past: p, id: id, in: in, live: live, epoch: v.Epoch(), cursor: cursor}
}

// Resume returns a source for a watch from an RV that the timeline no longer holds,
// or for a replay. It returns nil if the RV is not recorded, with the reason if
// there is one: a status.ExpiredError if the RV is inside a gap.
func (p *Past) Resume(ctx context.Context, id kube.Resource, live *timeline.Timeline, v *timeline.View, rv uint64, in timeline.Interest) (*Source, error) {
	st, err := p.Holding(ctx, id, rv)
	if errors.Is(err, history.ErrGap) {
		return nil, status.ExpiredError(err.Error())
	}
	if st == nil || live.View().Epoch() != v.Epoch() {
		return nil, err
	}
	return &Source{past: p, id: id, in: in, live: live, epoch: v.Epoch(), stream: st, rv: rv}, nil
}

// A syncing is a wait for what the timeline has to be recorded.
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

// Ready returns a channel that is ready when Next, which had no more, may have
// something. It is another one after each Next.
func (s *Source) Ready() <-chan struct{} {
	if s.cursor != nil {
		return s.cursor.Ready()
	}
	return s.wake
}

// Now is the time as of which rows are printed.
func (s *Source) Now() time.Time {
	if s.cursor != nil {
		return time.Now()
	}
	return s.at
}

// Replayed returns the moment that a replay is at; the zero time for no replay, or
// when it has reached the present.
func (s *Source) Replayed() time.Time {
	if s.clock == nil {
		return time.Time{}
	}
	return s.clock.now()
}

// Next returns the events after the position, and moves it; it does not wait for
// more. A batch that did not happen just now has no time.
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
	b.More = b.More || s.wake == nil // there is more, or the end to be seen
	return b, err
}

// atEnd is Next when all events that are recorded, or due, were yielded.
func (s *Source) atEnd() (timeline.Batch, error) {
	if s.clock != nil && !s.clock.caughtUp() {
		s.move(s.clock.now())
		if s.wake == nil { // there is no event to wait for
			s.sleep(min(time.Second, max(s.clock.until(time.Now()), 10*time.Millisecond)))
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

// errNotYet: the timeline does not have the position, but may when more is recorded.
var errNotYet = errors.New("the timeline does not have the position")

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
		// A source inside a gap has yielded a part of the difference, and the
		// history has the rest.
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

// adopt returns the timeline's view, nil if there is none yet. It fails with a
// status.ExpiredError if the timeline has begun another history, of which nothing is
// recorded yet: its head would be below what is recorded.
func (s *Source) adopt() (*timeline.View, error) {
	if s.epoch != 0 {
		return s.live.View(), nil
	}
	recorded := s.stream.Head().RV // before the view, which is ahead of it
	v := s.live.View()
	switch {
	case v == nil:
	case v.RV < recorded:
		return nil, status.ExpiredError(status.TooOld(s.rv, v.Start))
	default:
		s.epoch = v.Epoch()
	}
	return v, nil
}

// fallBack moves the source to the history, if that has the position.
func (s *Source) fallBack() bool {
	v, rv := s.live.View(), s.cursor.RV()
	if _, in := v.GapAround(rv); in || v.Epoch() != s.epoch {
		return false
	}
	st := s.past.Newest(s.id)
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

// settle ends the wait of the last Next.
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

// await makes the source ready when the timeline has a first view, or when what it
// has is recorded. It fails if that cannot happen.
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
			v := s.live.View()
			gap, in := v.GapAround(s.rv)
			if s.rv == sync.from && s.stream.Head().RV <= s.rv && (in || s.rv < v.Start) {
				return status.ExpiredError(status.TooOld(s.rv, max(v.Start, gap.To))) // nothing more is recorded
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
		_ = s.past.Sync(ctx, s.id) // the result shows in the history
	}()
	s.syncing, s.wake = sync, sync.done
	return nil
}
