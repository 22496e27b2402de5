// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A source is where a watch has its events from, and its place there: a
// timeline.Cursor, or a pastCursor. It is for one goroutine.
type source interface {
	// Next returns what there is behind the place, and moves it; it does not wait
	// for more. The batch of what did not just happen has no time.
	Next() (timeline.Batch, error)
	// Ready returns a channel that can be received from when Next, which had no
	// more, may have something. It is another one after each Next.
	Ready() <-chan struct{}
	// RV returns the place: everything ≤ it has been yielded (T5).
	RV() uint64
	Close()
}

// A frameSink takes the frames of one watch to its client.
type frameSink interface {
	// frame takes one frame, in parts. It may keep it until flush.
	frame(parts []string) error
	flush() error
	// release gives back what the sink holds.
	release()
}

// A frameSharer is a sink that takes frames that streams share.
type frameSharer interface {
	share(*wire.Frame) error
}

// shareMost is the number of events at a time up to which their frames are
// shared. One that has more of them lags behind the others, or begins, and
// nobody else wants them now.
const shareMost = 32

// A watchStream writes one watch to one client. After its end (the client is
// gone, or the form has become impossible) it writes nothing more, and flush
// says so. While it is idle it keeps neither the request nor any state (T10).
type watchStream struct {
	cache  *cache
	res    *resource
	source source
	form   wire.Form
	in     timeline.Interest
	wire   *wire.Stream
	sink   frameSink
	sharer frameSharer // the sink, if it is one
	pulse  pulse
	gone   <-chan struct{} // closed when the client is
	over   <-chan struct{} // closed when it is to end early; nil for never

	initial []*scan.Object // the state to begin with; nil after it was written
	// more returns the next piece of it, empty at the end; nil for all at once.
	more func() ([]*scan.Object, error)
	end  uint64 // the RV of the bookmark behind it; 0 for none

	lost string // why the RV cannot be continued from: the watch is one ERROR; "" when it can

	bookmarks    bool
	bookmarkForm *scan.Object
	start        uint64 // bookmarks at or below it are not sent
	dirty        bool   // there is something to flush
	ended        bool
}

// run writes the watch until it ends.
func (s *watchStream) run() {
	defer s.sink.release()
	if s.pulse.timeUp() {
		return // a negative timeoutSeconds
	}
	if s.lost != "" {
		s.expired(s.lost)
		return
	}
	s.snapshot()
	s.follow()
}

// follow writes what the source yields until the watch ends: the client goes
// away, time is up, the gateway drains, the timeline ends, or the definition of
// the resource is over.
func (s *watchStream) follow() {
	source, draining, over := s.source, s.cache.draining, s.over
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
			s.event(e, live && len(b.Events) <= shareMost)
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
		// The place of a source that has nothing to yield moves by Next alone:
		// a bookmark comes after it.
		select {
		case <-source.Ready():
		case <-s.pulse.beat:
			if s.pulse.timeUp() {
				return
			}
			due = true
		case <-over:
			over, last = nil, true // behind what there is, which may be an ERROR
		case <-draining:
			draining, drained = nil, time.After(rand.N(s.cache.spread+1))
		case <-drained:
			due, last = true, true
		case <-s.gone:
			return
		}
	}
}

// write writes one frame, in parts.
func (s *watchStream) write(parts []string, err error) {
	if s.ended || s.unwritable(err) {
		return
	}
	s.dirty = true
	s.ended = s.sink.frame(parts) != nil
}

// unwritable takes note of what cannot be encoded: the stream ends as at a
// timeout.
func (s *watchStream) unwritable(err error) bool {
	if err == nil {
		return false
	}
	// In other columns the client's next one begins; in a form that has become
	// impossible it is for the API server.
	if errors.Is(err, wire.ErrForm) && !errors.Is(err, wire.ErrColumns) {
		s.res.unwritable.add(s.form)
	}
	s.ended = true
	return true
}

// event writes what an event is to this watcher; shared is set where others want
// it, too, at the same time.
func (s *watchStream) event(e *timeline.Event, shared bool) {
	if s.ended {
		return
	}
	typ, object, ok := s.in.Seen(e)
	if !ok || typ == kube.Modified && s.res.encoder.Unchanged(s.form, e.Prev, object) {
		return
	}
	if s.sharer != nil && shared {
		switch frame, err := s.wire.Shared(typ, object); {
		case s.unwritable(err):
			return
		case frame != nil:
			s.dirty = true
			s.ended = s.sharer.share(frame) != nil
			return
		}
	}
	s.write(s.wire.Event(typ, object))
}

// snapshot writes the initial events, in list order, and the bookmark that
// ends them.
func (s *watchStream) snapshot() {
	for s.piece() {
		for i, o := range s.initial {
			s.initial[i] = nil // a slow client is not to keep what it has got
			if s.write(s.wire.Event(kube.Added, o)); s.ended {
				break
			}
		}
		s.initial = nil
	}
	s.more = nil
	if s.end > 0 && s.bookmarks {
		s.write(s.wire.Event(kube.Bookmark, scan.BookmarkObject(s.bookmarkForm, s.end, true)))
	}
}

// piece reports whether there are initial events to write.
func (s *watchStream) piece() bool {
	if len(s.initial) > 0 || s.more == nil || s.ended || s.isOver() {
		return len(s.initial) > 0 && !s.ended
	}
	var err error
	if s.initial, err = s.more(); err != nil {
		s.cache.log.Error("the history cannot be read", "resource", s.res.id.String(), "err", err)
		s.ended = true
	}
	return len(s.initial) > 0 && !s.ended
}

// bookmark writes a bookmark, if the client asked for them (T5: everything up
// to rv has been written). Like the API server's, it is above the start; those of
// a replay, which tell how far it is, may be at it.
func (s *watchStream) bookmark(rv uint64) {
	var at time.Time
	if past, ok := s.source.(*pastCursor); ok {
		if at = past.replayed(); at.IsZero() {
			s.pulse.setEvery(0)
		}
	}
	switch {
	case !s.bookmarks:
	case !at.IsZero():
		moment := map[string]string{momentAnnotation: at.UTC().Format(time.RFC3339Nano)}
		s.write(s.wire.Event(kube.Bookmark, scan.AnnotatedBookmark(s.bookmarkForm, rv, moment)))
	case rv > s.start:
		s.write(s.wire.Event(kube.Bookmark, scan.BookmarkObject(s.bookmarkForm, rv, false)))
	}
}

// broken ends the stream for an error of its source: without a word when that
// has ended.
func (s *watchStream) broken(err error) {
	if why := s.whyBroken(err); why != "" {
		s.expired(why)
	}
}

func (s *watchStream) whyBroken(err error) string {
	if gone, ok := errors.AsType[goneError](err); ok {
		return gone.Error()
	}
	if errors.Is(err, timeline.ErrCompacted) {
		return tooOld(s.source.RV(), s.res.timeline.View().Start)
	}
	return ""
}

// expired ends the stream with an ERROR.
func (s *watchStream) expired(message string) {
	s.write(s.wire.Error(*newStatus(http.StatusGone, metav1.StatusReasonExpired, message)))
	s.flush(time.Time{}, false)
}

// flush sends what was written. live is set for events that were published at
// the time given; how long they took is measured. It returns false at the end.
func (s *watchStream) flush(published time.Time, live bool) bool {
	if !s.dirty {
		return !s.ended
	}
	s.dirty = false
	if s.sink.flush() != nil {
		s.ended = true
	} else if live && !s.ended {
		s.cache.metrics.lag.Observe(time.Since(published).Seconds())
	}
	return !s.ended
}

// isOver reports whether the client is gone, or the time is up.
func (s *watchStream) isOver() bool {
	select {
	case <-s.gone:
		return true
	default:
		return s.pulse.timeUp()
	}
}
