// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"context"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A Source yields the events of a watch after a position: a timeline.Cursor, or a
// past.Source. It is used by one goroutine at a time.
type Source interface {
	// Next returns the events after the position, and moves the position. It does not
	// wait for new events. A batch of events of the past has no time. The error is a
	// status.ExpiredError or timeline.ErrCompacted if the watch ends with ERROR 410;
	// after any other error it ends as at a timeout.
	Next() (timeline.Batch, error)
	// Ready returns a channel that becomes ready when Next may have more events. Each
	// call of Next replaces it.
	Ready() <-chan struct{}
	// TryNext is Next if that does not have to wait for the disk; otherwise ok is false and
	// nothing has changed.
	TryNext() (b timeline.Batch, ok bool, err error)
	// Await makes w be woken when TryNext may have more. It returns false if it may have
	// more already, or if it is not ok.
	Await(w timeline.Waker) bool
	// RV returns the position: every event up to it was yielded (T5).
	RV() uint64
	Close()
}

// An Owner is the resource that a watch reads.
type Owner interface {
	// CloseWatch is called at the end of a watch.
	CloseWatch()
	// Unwritable is called if an object cannot be encoded in a form, and with why.
	Unwritable(wire.Form, error)
	// Heard returns when the API server was last heard of on the watch from which the
	// events come.
	Heard() time.Time
	// Oldest returns the oldest RV from which a watch can be resumed now.
	Oldest() uint64
}

const (
	// maxSharedEvents is the largest batch whose frames are shared. A watch with more
	// events at a time has just begun or lags, so that no other watch sends the same
	// events now.
	maxSharedEvents = 32
	// replayBookmarkInterval is the period of the bookmarks of a replay, which report
	// its progress.
	replayBookmarkInterval = time.Second
	// momentAnnotation of such a bookmark is the moment that the replay has reached, and of
	// one that follows an event the time at which the event was observed; in RFC 3339.
	momentAnnotation = "watchkeeper/moment"
	// liveAnnotation of a bookmark is "true" if the watch sent everything that had been
	// recorded, and continues live.
	liveAnnotation = "watchkeeper/live"
)

// A Watch writes one watch to one client. The exported fields are set before it is
// served, and not changed later. After its end (the client is gone, or an object
// cannot be encoded) it writes nothing more, and flush returns false. While it is idle
// it keeps neither the request nor any state (T10).
type Watch struct {
	Owner    Owner
	Source   Source
	Encoder  *wire.Encoder
	Wire     *wire.Stream
	Form     wire.Form
	Interest timeline.Interest

	// Initial are the initial events. More, if not nil, returns further ones in
	// pieces; the last piece is empty.
	Initial []*scan.Object
	More    func() ([]*scan.Object, error)
	// InitialEnd is the RV of the bookmark that ends the initial events; 0 for none.
	InitialEnd uint64
	// Turn is a turn of the watch's user that was given up: the initial events are encoded and
	// compressed in it. nil for none.
	Turn *fairness.Turn
	// Began is called once, when the initial events are written or the watch has ended; nil
	// for nothing.
	Began func()
	// Start is the RV that bookmarks have to exceed.
	Start uint64
	// Expired is why the watch cannot begin at its RV: it then consists of one ERROR.
	// "" if it can.
	Expired string
	// Bookmarks is set if the client allows bookmarks; BookmarkTemplate is the object
	// that they are made from.
	Bookmarks        bool
	BookmarkTemplate *scan.Object
	// Replayed returns the moment that a replay has reached, the zero time when it
	// has caught up; nil if this is no replay.
	Replayed func() time.Time
	// Live reports whether a watch that begins in the history has gone live, where it
	// writes a bookmark; nil for other watches.
	Live func() bool
	// Times is set if a bookmark with the time of the events follows the events of each RV.
	Times bool
	// Over ends when the watch has to end after the available events; nil for never.
	Over context.Context
	// Revoked is closed when the client may not read further: the watch then ends after
	// the event that is being written. nil for never.
	Revoked <-chan struct{}

	tracker *Tracker
	sink    frameSink
	sharer  frameSharer // the sink, if it can share frames
	timer   watchTimer
	gone    <-chan struct{} // closed when the client has disconnected; nil if that is found out otherwise
	dirty   bool            // frames are buffered
	zip     *gzipSink       // the sink of a watch in gzip; nil for others
	ended   bool

	batch   timeline.Batch // the events that are written now
	written int            // of them
	within  bool           // a batch has been read, and what follows it is not written yet
	due     bool           // a bookmark is due
	last    bool           // the watch ends after this batch

	pulled pulled // its state while a connection's writer pulls it
}

// SetTimeout sets how long the watch lasts. It must be called before the watch is
// served.
func (s *Watch) SetTimeout(d time.Duration) {
	s.timer.deadline = time.Now().Add(d)
	if s.Replayed != nil && s.Bookmarks {
		s.timer.interval = replayBookmarkInterval
	}
}

// Close releases a watch that is not served.
func (s *Watch) Close() {
	s.began()
	s.Source.Close()
	s.Owner.CloseWatch()
}

// run writes the watch until it ends, or until it can be pulled: then it returns true.
func (s *Watch) run() bool {
	defer s.sink.release()
	if s.timer.timeUp() {
		return false // a negative timeoutSeconds
	}
	if s.Expired != "" {
		s.expired(s.Expired)
		return false
	}
	s.snapshot()
	s.began()
	return s.follow()
}

func (s *Watch) began() {
	if began := s.Began; began != nil {
		s.Began = nil
		began()
	}
}

// follow writes what the source yields until the watch ends: the client goes away,
// the time is up, the gateway drains, the timeline ends, or the definition of the
// resource changes. It returns true when the watch can be pulled.
func (s *Watch) follow() bool {
	defer s.sink.release()
	var over <-chan struct{}
	if s.Over != nil {
		over = s.Over.Done()
	}
	for {
		if !s.within && s.canPull() {
			return s.flush(time.Time{}, false) // the initial events
		}
		switch s.step(true) {
		case ended:
			return false
		case more:
			continue
		}
		select {
		case <-s.Source.Ready():
		case <-s.timer.fired:
			s.timer.wake() // for step
		case <-over:
			over = nil
		case <-s.gone:
			return false
		case <-s.Revoked:
			return false
		}
	}
}

// A phase is what follows a step.
type phase uint8

const (
	more  phase = iota // another step
	idle               // another step when something has happened
	away               // the source has to read from the disk: another step that may wait
	ended              // nothing: the watch has ended
)

// step writes the next event, or what follows the events of a batch; or it reads the next
// batch. Only with wait may it read from the disk.
func (s *Watch) step(wait bool) phase {
	switch {
	case s.written < len(s.batch.Events):
		s.nextEvent()
		return more
	case s.within:
		return s.endBatch()
	case s.isRevoked() || !s.look():
		return ended
	}
	var b timeline.Batch
	var err error
	ok := true
	if wait {
		b, err = s.Source.Next()
	} else {
		b, ok, err = s.Source.TryNext()
	}
	switch {
	case !ok:
		return away
	case err != nil:
		s.broken(err)
		return ended
	}
	s.batch, s.written, s.within = b, 0, true
	return more
}

// happened reports whether look would find something.
func (s *Watch) happened() bool {
	return len(s.timer.fired) > 0 || s.isRevoked() || !s.last && (s.Over != nil && s.Over.Err() != nil || s.timer.drained())
}

// look takes what has happened to the watch. It returns false if the watch has ended.
func (s *Watch) look() bool {
	select {
	case <-s.timer.fired:
		if s.timer.timeUp() {
			return false
		}
		s.due = true
	default:
	}
	s.last = s.last || s.Over != nil && s.Over.Err() != nil // after the remaining events, which may be an ERROR
	if s.timer.drained() {
		s.due, s.last = true, true
	}
	return true
}

// isLive reports whether the batch has events of now.
func (s *Watch) isLive() bool { return !s.batch.At.IsZero() }

func (s *Watch) nextEvent() {
	events := s.batch.Events
	e := events[s.written]
	s.written++
	wrote := s.event(e, s.isLive() && len(events) <= maxSharedEvents)
	if s.Times && wrote && (s.written == len(events) || events[s.written].RV > e.RV) {
		s.annotated(e.RV, momentAnnotation, stamp(e.At))
	}
}

// endBatch writes what follows the events of a batch.
func (s *Watch) endBatch() phase {
	b := s.batch
	s.batch, s.written, s.within = timeline.Batch{}, 0, false
	if s.Live != nil && !b.More && s.Live() && !s.silent() {
		s.annotated(s.Source.RV(), liveAnnotation, "true")
		s.Live = nil
	}
	// Without events only Next moves the position of the source. So a bookmark that is
	// due is written after the next call.
	if s.due && !b.More {
		s.due = false
		s.bookmark(s.Source.RV())
	}
	switch live := !b.At.IsZero() && len(b.Events) > 0; {
	case !s.flush(b.At, live):
		return ended
	case b.More && !s.isOver():
		return more
	case s.last:
		return ended
	}
	return idle
}

// write writes one frame, given in parts.
func (s *Watch) write(parts []string, err error) {
	if s.ended || s.unwritable(err) {
		return
	}
	s.dirty = true
	s.ended = s.sink.frame(parts) != nil
}

// unwritable reports whether an object could not be encoded. The watch then ends as at
// a timeout.
func (s *Watch) unwritable(err error) bool {
	if err == nil {
		return false
	}
	// If only the columns have changed, the client's next watch has the new ones.
	// Otherwise the API server has to serve watches in this form.
	if errors.Is(err, wire.ErrForm) && !errors.Is(err, wire.ErrColumns) {
		s.Owner.Unwritable(s.Form, err)
	}
	s.ended = true
	return true
}

// event writes an event as this watcher sees it. shared is set if other watches may
// send it at the same time. It returns false if the watcher does not see it, or the watch
// has ended.
func (s *Watch) event(e *timeline.Event, shared bool) bool {
	if s.ended = s.ended || s.isRevoked(); s.ended {
		return false
	}
	typ, object, ok := s.Interest.Seen(e)
	if !ok || typ == kube.Modified && s.Encoder.Unchanged(s.Form, e.Prev, object) {
		return false
	}
	if s.sharer != nil && shared {
		switch frame, err := s.Wire.Shared(typ, object); {
		case s.unwritable(err):
			return false
		case frame != nil:
			s.dirty = true
			s.ended = s.sharer.share(frame) != nil
			return !s.ended
		}
	}
	s.write(s.Wire.Event(typ, object))
	return !s.ended
}

// snapshot writes the initial events, in list order, and the bookmark that ends them.
func (s *Watch) snapshot() {
	for s.piece() {
		bytes := int64(0)
		for _, o := range s.Initial {
			bytes += int64(len(o.JSON))
		}
		s.timer.startInitial(bytes)
		for i, o := range s.Initial {
			if i%wire.Ahead == 0 {
				s.Turn.Yield()
				s.Wire.Prepare(s.Initial[i:min(i+wire.Ahead, len(s.Initial))])
				s.Turn.End()
			}
			s.Initial[i] = nil // a slow client must not keep objects that it has received
			if s.isRevoked() {
				s.ended = true
				break
			}
			if s.write(s.Wire.Event(kube.Added, o)); s.ended {
				break
			}
		}
		s.Initial = nil
	}
	s.timer.endInitial()
	s.More, s.Turn = nil, nil
	if s.InitialEnd > 0 && s.Bookmarks {
		s.write(s.Wire.Event(kube.Bookmark, scan.BookmarkObject(s.BookmarkTemplate, s.InitialEnd, true)))
	}
	if s.zip != nil && !s.ended {
		s.dirty = true
		s.ended = s.zip.endInitial() != nil
	}
}

// piece reads the next initial events. It returns false if there are none.
func (s *Watch) piece() bool {
	if len(s.Initial) > 0 || s.More == nil || s.ended || s.isOver() {
		return len(s.Initial) > 0 && !s.ended
	}
	var err error
	if s.Initial, err = s.More(); err != nil {
		s.tracker.log.Error("reading the history", "resource", s.Encoder.Resource.String(), "err", err)
		s.ended = true
	}
	return len(s.Initial) > 0 && !s.ended
}

// bookmark writes a bookmark at rv, if the client allows bookmarks. Every event up to
// rv was written before (T5). Like the API server's bookmarks it must be above the
// start; the bookmarks of a replay, which report its progress, may be at the start.
func (s *Watch) bookmark(rv uint64) {
	var at time.Time
	if s.Replayed != nil {
		if at = s.Replayed(); at.IsZero() {
			s.timer.setInterval(0)
		}
	}
	switch {
	case !s.Bookmarks:
	case s.silent():
		// A client takes a bookmark for a sign that the events reach it.
	case !at.IsZero():
		s.annotated(rv, momentAnnotation, stamp(at))
	case rv > s.Start:
		s.write(s.Wire.Event(kube.Bookmark, scan.BookmarkObject(s.BookmarkTemplate, rv, false)))
	}
}

// annotated writes a bookmark with an annotation, if the client allows bookmarks.
func (s *Watch) annotated(rv uint64, name, value string) {
	if s.Bookmarks {
		s.write(s.Wire.Event(kube.Bookmark, scan.AnnotatedBookmark(s.BookmarkTemplate, rv, map[string]string{name: value})))
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// silent reports whether the API server was not heard of for long.
func (s *Watch) silent() bool { return time.Since(s.Owner.Heard()) > maxSilence }

// broken ends the watch after an error of its source: with ERROR 410 if the position
// expired, otherwise as at a timeout.
func (s *Watch) broken(err error) {
	if why := s.whyBroken(err); why != "" {
		s.expired(why)
	}
}

func (s *Watch) whyBroken(err error) string {
	if gone, ok := errors.AsType[status.ExpiredError](err); ok {
		return gone.Error()
	}
	if errors.Is(err, timeline.ErrCompacted) {
		return status.TooOld(s.Source.RV(), s.Owner.Oldest())
	}
	return ""
}

// expired ends the watch with ERROR 410.
func (s *Watch) expired(message string) {
	s.write(s.Wire.Error(*status.Expired(message)))
	s.flush(time.Time{}, false)
}

// flush sends the buffered frames. live is set if they are events that were published
// at the given time: then their delay is measured. It returns false if the watch has
// ended.
func (s *Watch) flush(published time.Time, live bool) bool {
	if !s.dirty {
		return !s.ended
	}
	s.dirty = false
	if s.sink.flush() != nil {
		s.ended = true
	} else if live && !s.ended {
		s.sent(published)
	}
	return !s.ended
}

// sent measures the delay of events that were published at the given time.
func (s *Watch) sent(published time.Time) {
	if s.timer.puller.Load() != nil {
		s.pulled.published = published // measured when they are sent
		return
	}
	s.tracker.lag.Observe(time.Since(published).Seconds())
}

// isOver reports whether the client has disconnected or may not read further, or the
// time is up.
func (s *Watch) isOver() bool {
	select {
	case <-s.gone:
		return true
	default:
		return s.isRevoked() || s.timer.timeUp()
	}
}

// isRevoked reports whether the client may not read further.
func (s *Watch) isRevoked() bool {
	if s.Revoked == nil {
		return false
	}
	select {
	case <-s.Revoked:
		return true
	default:
		return false
	}
}

// Abort ends the watch at once, even if its client does not read.
func (s *Watch) Abort() { s.timer.abort() }
