// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// writeTimeout is how long a client may take to make room for a piece of a
// stream before it is given up as dead.
const writeTimeout = 60 * time.Second

// streamBuffer is the size of a piece.
const streamBuffer = 16 << 10

// streamBuffers are shared by all streams: one is needed only while there is
// something to write.
var streamBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, streamBuffer) }}

// A watchStream writes one watch to one client. After a write error it writes
// nothing more, and flush says so.
type watchStream struct {
	w         http.ResponseWriter
	ctl       *http.ResponseController
	buf       *bufio.Writer // nil while there is nothing to write
	match     filterFunc
	bookmarks bool
	form      *kube.Object // of bookmarks
	lag       prometheus.Observer
	start     uint64 // bookmarks at or below it are not sent
	failed    bool
}

func newWatchStream(w http.ResponseWriter, rd *read, v *timeline.View, start uint64, lag prometheus.Observer) *watchStream {
	return &watchStream{
		w: w, ctl: http.NewResponseController(w),
		match: rd.match, bookmarks: rd.opts.AllowWatchBookmarks,
		form: v.BookmarkForm, start: start, lag: lag,
	}
}

// begin sends the headers, ahead of any event.
func (s *watchStream) begin() {
	setJSON(s.w.Header())
	s.w.WriteHeader(http.StatusOK)
	s.failed = s.ctl.Flush() != nil
}

// deadlineWriter gives each piece a deadline of its own, so that a slow client
// may take as long as it likes as long as it takes something.
type deadlineWriter struct{ s *watchStream }

func (d deadlineWriter) Write(p []byte) (int, error) {
	// Not every ResponseWriter knows deadlines; the net/http ones do.
	_ = d.s.ctl.SetWriteDeadline(time.Now().Add(writeTimeout))
	return d.s.w.Write(p)
}

func (s *watchStream) writer() *bufio.Writer {
	if s.buf == nil {
		s.buf = streamBuffers.Get().(*bufio.Writer)
		s.buf.Reset(deadlineWriter{s})
	}
	return s.buf
}

func (s *watchStream) frame(typ kube.EventType, object string) {
	if !s.failed {
		s.failed = wire.WriteFrame(s.writer(), typ, object) != nil
	}
}

// event writes what an event is to this watcher.
func (s *watchStream) event(e *timeline.Event) {
	typ, object, ok := transition(e, s.match)
	switch {
	case !ok || s.failed:
	case typ == e.Type && e.Frame != "":
		b := s.writer()
		b.WriteString(e.Frame)
		s.failed = b.WriteByte('\n') != nil // a bufio.Writer keeps its first error
	default:
		s.frame(typ, object)
	}
}

// snapshot writes the initial events, in list order, and the bookmark that
// ends them.
func (s *watchStream) snapshot(v *timeline.View, rd *read, end bool) {
	for o := range newPage(&v.Snapshot, rd, "", 0).items {
		if s.frame(kube.Added, o.JSON); s.failed {
			return
		}
	}
	if end && s.bookmarks {
		s.frame(kube.Bookmark, kube.BookmarkObject(s.form, v.RV, true))
	}
}

// bookmark writes a bookmark, if the client asked for them (T5: everything up
// to rv has been written). Like the API server's, it is above the start.
func (s *watchStream) bookmark(rv uint64) {
	if s.bookmarks && rv > s.start {
		s.frame(kube.Bookmark, kube.BookmarkObject(s.form, rv, false))
	}
}

// expired ends the stream with an ERROR.
func (s *watchStream) expired(message string) {
	status := newStatus(http.StatusGone, metav1.StatusReasonExpired, message)
	status.Kind, status.APIVersion = "Status", "v1"
	text, _ := json.Marshal(status) // strings and numbers always marshal
	s.frame(kube.Error, string(text))
	s.flush(nil, false)
}

// flush sends what was written. live is set for events of view v that have
// just come in; how long they took is measured. It returns false when the
// client is gone.
func (s *watchStream) flush(v *timeline.View, live bool) bool {
	if s.buf == nil || s.failed {
		return !s.failed
	}
	s.failed = s.buf.Flush() != nil || s.ctl.Flush() != nil
	// An HTTP/2 stream would end at its deadline though nothing is waiting,
	// and an HTTP/1.1 connection would keep it for its next request.
	_ = s.ctl.SetWriteDeadline(time.Time{})
	s.release()
	if live && !s.failed {
		s.lag.Observe(time.Since(v.At).Seconds())
	}
	return !s.failed
}

// release gives the buffer back.
func (s *watchStream) release() {
	if s.buf != nil {
		s.buf.Reset(io.Discard)
		streamBuffers.Put(s.buf)
		s.buf = nil
	}
}
