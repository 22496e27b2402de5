// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A frameSink takes the frames of one watch to its client.
type frameSink interface {
	// frame takes one frame, in parts. It may keep it until flush.
	frame(parts []string) error
	flush() error
	// release gives back what the sink holds.
	release()
}

// A watchStream writes one watch to one client. After its end (the client is
// gone, or the form has become impossible) it writes nothing more, and flush
// says so.
type watchStream struct {
	res   *resource
	rd    *read
	in    timeline.Interest
	sink  frameSink
	wire  *wire.Stream
	form  *kube.Object // of bookmarks
	lag   prometheus.Observer
	start uint64 // bookmarks at or below it are not sent
	dirty bool   // there is something to flush
	ended bool
}

// write writes one frame.
func (s *watchStream) write(parts []string, err error) {
	if s.ended {
		return
	}
	switch {
	case errors.Is(err, wire.ErrColumns): // its client's next one begins in others
		s.ended = true
		return
	case errors.Is(err, wire.ErrForm):
		// The stream ends as at a timeout; the client's next one is for the
		// API server.
		s.res.unwritable.add(s.rd.form)
		s.ended = true
		return
	}
	if err == nil {
		s.dirty = true
		err = s.sink.frame(parts)
	}
	s.ended = err != nil
}

// event writes what an event is to this watcher.
func (s *watchStream) event(e *timeline.Event) {
	if typ, object, ok := s.in.Seen(e); ok && !s.ended {
		s.write(s.wire.Event(typ, object))
	}
}

// snapshot writes the initial events, in list order, and the bookmark that
// ends them.
func (s *watchStream) snapshot(v *timeline.View, end bool) {
	for _, o := range newPage(&v.Snapshot, s.rd, "", 0).items {
		if s.write(s.wire.Event(kube.Added, o)); s.ended {
			return
		}
	}
	if end && s.rd.opts.AllowWatchBookmarks {
		s.write(s.wire.Event(kube.Bookmark, kube.BookmarkObject(s.form, v.RV, true)))
	}
}

// bookmark writes a bookmark, if the client asked for them (T5: everything up
// to rv has been written). Like the API server's, it is above the start.
func (s *watchStream) bookmark(rv uint64) {
	if s.rd.opts.AllowWatchBookmarks && rv > s.start {
		s.write(s.wire.Event(kube.Bookmark, kube.BookmarkObject(s.form, rv, false)))
	}
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
		s.lag.Observe(time.Since(published).Seconds())
	}
	return !s.ended
}
