// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/status"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A Source yields the events of a watch from a position on: a timeline.Cursor, or a
// past.Source. It belongs to one goroutine.
type Source interface {
	// Next returns the events after the position, and moves it; it does not wait for
	// more. A batch that did not happen just now has no time. The error is a
	// status.ExpiredError or timeline.ErrCompacted if the watch cannot go on (410);
	// any other ends it without a word.
	Next() (timeline.Batch, error)
	// Ready returns a channel that is ready when Next, which had no more, may have
	// something. It is another one after each Next.
	Ready() <-chan struct{}
	// RV returns the position: every event up to it was yielded (T5).
	RV() uint64
	Close()
}

// An Owner is the resource that a watch reads.
type Owner interface {
	// CloseWatch is called at the end of a watch.
	CloseWatch()
	// Unwritable is called when an object cannot be written in a form.
	Unwritable(wire.Form)
	// Oldest returns the oldest RV from which a watch can go on now.
	Oldest() uint64
}

const (
	// maxSharedEvents is the number of events at a time up to which their frames are
	// shared. A watch with more of them lags behind the others, or begins, and no
	// other wants them now.
	maxSharedEvents = 32
	// replayBookmarkInterval is the period of the bookmarks of a replay, which say
	// how far it is.
	replayBookmarkInterval = time.Second
	// momentAnnotation is where they say it, in RFC 3339.
	momentAnnotation = "watchkeeper/moment"
)

// A Watch writes one watch to one client. The exported fields are set before it is
// served and not changed then. After its end (the client is gone, or the form has
// become impossible) it writes nothing more, and flush says so. While it is idle it
// keeps neither the request nor any state (T10).
type Watch struct {
	Owner    Owner
	Source   Source
	Encoder  *wire.Encoder
	Wire     *wire.Stream
	Form     wire.Form
	Interest timeline.Interest

	// Initial is the state that the watch begins with. More returns the next piece
	// of it, empty at the end; nil if Initial is all.
	Initial []*scan.Object
	More    func() ([]*scan.Object, error)
	// InitialEnd is the RV of the bookmark that ends the state; 0 for none.
	InitialEnd uint64
	// Start is the RV that bookmarks have to exceed.
	Start uint64
	// Expired is why the watch cannot go on from its RV: then it is one ERROR; ""
	// if it can.
	Expired string
	// Bookmarks is set if the client allows them; BookmarkForm is what they look
	// like.
	Bookmarks    bool
	BookmarkForm *scan.Object
	// Replayed returns the moment that a replay is at, the zero time when it has
	// reached the present; nil for no replay.
	Replayed func() time.Time
	// Over is closed when the watch has to end after what there is; nil for never.
	Over <-chan struct{}

	tracker *Tracker
	sink    frameSink
	sharer  frameSharer // the sink, if it is one
	timer   watchTimer
	gone    <-chan struct{} // closed when the client is
	dirty   bool            // there is something to flush
	ended   bool
}

// SetTimeout sets how long the watch lasts. It is required.
func (s *Watch) SetTimeout(d time.Duration) {
	s.timer.deadline = time.Now().Add(d)
	if s.Replayed != nil && s.Bookmarks {
		s.timer.interval = replayBookmarkInterval
	}
}

// Close ends a watch that is not served.
func (s *Watch) Close() {
	s.Source.Close()
	s.Owner.CloseWatch()
}

// run writes the watch until it ends.
func (s *Watch) run() {
	defer s.sink.release()
	if s.timer.timeUp() {
		return // a negative timeoutSeconds
	}
	if s.Expired != "" {
		s.expired(s.Expired)
		return
	}
	s.snapshot()
	s.follow()
}

// follow writes what the source yields until the watch ends: the client goes away,
// the time is up, the gateway drains, the timeline ends, or the definition of the
// resource changes.
func (s *Watch) follow() {
	source, draining, over := s.Source, s.tracker.draining, s.Over
	var drained <-chan time.Time
	last, due := false, false // what comes now is the last; a bookmark is due
	for {
		b, err := source.Next()
		if err != nil {
			s.broken(err)
			return
		}
		live := !b.At.IsZero()
		for _, e := range b.Events {
			s.event(e, live && len(b.Events) <= maxSharedEvents)
		}
		if due && !b.More {
			due = false
			s.bookmark(source.RV())
		}
		if !s.flush(b.At, live && len(b.Events) > 0) {
			return
		}
		if b.More && !s.isOver() {
			continue
		}
		if last {
			return
		}
		// The position of a source without events moves by Next only: a bookmark
		// comes after it.
		select {
		case <-source.Ready():
		case <-s.timer.fired:
			if s.timer.timeUp() {
				return
			}
			due = true
		case <-over:
			over, last = nil, true // after what there is, which may be an ERROR
		case <-draining:
			draining, drained = nil, time.After(rand.N(s.tracker.spread+1))
		case <-drained:
			due, last = true, true
		case <-s.gone:
			return
		}
	}
}

// write writes one frame, in parts.
func (s *Watch) write(parts []string, err error) {
	if s.ended || s.unwritable(err) {
		return
	}
	s.dirty = true
	s.ended = s.sink.frame(parts) != nil
}

// unwritable reports what cannot be encoded: the watch then ends as at a timeout.
func (s *Watch) unwritable(err error) bool {
	if err == nil {
		return false
	}
	// When the columns have changed, the client's next watch has the new ones; a
	// watch in a form that has become impossible is for the API server.
	if errors.Is(err, wire.ErrForm) && !errors.Is(err, wire.ErrColumns) {
		s.Owner.Unwritable(s.Form)
	}
	s.ended = true
	return true
}

// event writes an event as this watcher sees it; shared is set where others may want
// it at the same time.
func (s *Watch) event(e *timeline.Event, shared bool) {
	if s.ended {
		return
	}
	typ, object, ok := s.Interest.Seen(e)
	if !ok || typ == kube.Modified && s.Encoder.Unchanged(s.Form, e.Prev, object) {
		return
	}
	if s.sharer != nil && shared {
		switch frame, err := s.Wire.Shared(typ, object); {
		case s.unwritable(err):
			return
		case frame != nil:
			s.dirty = true
			s.ended = s.sharer.share(frame) != nil
			return
		}
	}
	s.write(s.Wire.Event(typ, object))
}

// snapshot writes the initial events, in list order, and the bookmark that
// ends them.
func (s *Watch) snapshot() {
	for s.piece() {
		for i, o := range s.Initial {
			s.Initial[i] = nil // a slow client must not keep what it has received
			if s.write(s.Wire.Event(kube.Added, o)); s.ended {
				break
			}
		}
		s.Initial = nil
	}
	s.More = nil
	if s.InitialEnd > 0 && s.Bookmarks {
		s.write(s.Wire.Event(kube.Bookmark, scan.BookmarkObject(s.BookmarkForm, s.InitialEnd, true)))
	}
}

// piece reports whether there are initial events to write.
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

// bookmark writes a bookmark, if the client asked for them (T5: everything up to rv
// was written). Like the API server's it is above the start; those of a replay,
// which say how far it is, may be at it.
func (s *Watch) bookmark(rv uint64) {
	var at time.Time
	if s.Replayed != nil {
		if at = s.Replayed(); at.IsZero() {
			s.timer.setInterval(0)
		}
	}
	switch {
	case !s.Bookmarks:
	case !at.IsZero():
		moment := map[string]string{momentAnnotation: at.UTC().Format(time.RFC3339Nano)}
		s.write(s.Wire.Event(kube.Bookmark, scan.AnnotatedBookmark(s.BookmarkForm, rv, moment)))
	case rv > s.Start:
		s.write(s.Wire.Event(kube.Bookmark, scan.BookmarkObject(s.BookmarkForm, rv, false)))
	}
}

// broken ends the watch for an error of its source: without a word if that has
// ended.
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

// expired ends the watch with an ERROR.
func (s *Watch) expired(message string) {
	s.write(s.Wire.Error(*status.Expired(message)))
	s.flush(time.Time{}, false)
}

// flush sends what was written. live is set for events that were published at
// the time given; how long they took is measured. It returns false at the end.
func (s *Watch) flush(published time.Time, live bool) bool {
	if !s.dirty {
		return !s.ended
	}
	s.dirty = false
	if s.sink.flush() != nil {
		s.ended = true
	} else if live && !s.ended {
		s.tracker.lag.Observe(time.Since(published).Seconds())
	}
	return !s.ended
}

// isOver reports whether the client is gone, or the time is up.
func (s *Watch) isOver() bool {
	select {
	case <-s.gone:
		return true
	default:
		return s.timer.timeUp()
	}
}
