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

// streamBuffer is the size of a piece.
const streamBuffer = 16 << 10

// streamBuffers are shared by all streams: one is needed only while there is
// something to write.
var streamBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, streamBuffer) }}

// A watchStream writes one watch to one client. After a write error it writes
// nothing more, and flush says so.
type watchStream struct {
	w      http.ResponseWriter
	out    deadlineWriter
	rd     *read
	buf    *bufio.Writer // nil while there is nothing to write
	form   *kube.Object  // of bookmarks
	lag    prometheus.Observer
	start  uint64 // bookmarks at or below it are not sent
	failed bool
}

func newWatchStream(w http.ResponseWriter, rd *read, v *timeline.View, start uint64, lag prometheus.Observer) *watchStream {
	return &watchStream{
		w: w, out: newDeadlineWriter(w), rd: rd,
		form: v.BookmarkForm, start: start, lag: lag,
	}
}

// begin sends the headers, ahead of any event.
func (s *watchStream) begin() {
	setJSON(s.w.Header(), s.rd)
	s.w.WriteHeader(http.StatusOK)
	s.failed = s.out.ctl.Flush() != nil
}

func (s *watchStream) writer() *bufio.Writer {
	if s.buf == nil {
		s.buf = streamBuffers.Get().(*bufio.Writer)
		s.buf.Reset(s.out)
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
	typ, object, ok := transition(e, s.rd.match)
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
func (s *watchStream) snapshot(v *timeline.View, end bool) {
	for _, o := range newPage(&v.Snapshot, s.rd, "", 0).items {
		if s.frame(kube.Added, o.JSON); s.failed {
			return
		}
	}
	if end && s.rd.opts.AllowWatchBookmarks {
		s.frame(kube.Bookmark, kube.BookmarkObject(s.form, v.RV, true))
	}
}

// bookmark writes a bookmark, if the client asked for them (T5: everything up
// to rv has been written). Like the API server's, it is above the start.
func (s *watchStream) bookmark(rv uint64) {
	if s.rd.opts.AllowWatchBookmarks && rv > s.start {
		s.frame(kube.Bookmark, kube.BookmarkObject(s.form, rv, false))
	}
}

// expired ends the stream with an ERROR.
func (s *watchStream) expired(message string) {
	status := newStatus(http.StatusGone, metav1.StatusReasonExpired, message)
	status.Kind, status.APIVersion = "Status", "v1"
	text, _ := json.Marshal(status) // strings and numbers always marshal
	s.frame(kube.Error, string(text))
	s.flush(time.Time{}, false)
}

// flush sends what was written. live is set for events that were published at
// the time given; how long they took is measured. It returns false when the
// client is gone.
func (s *watchStream) flush(published time.Time, live bool) bool {
	if s.buf == nil || s.failed {
		return !s.failed
	}
	s.failed = s.buf.Flush() != nil || s.out.ctl.Flush() != nil
	s.out.clear()
	s.release()
	if live && !s.failed {
		s.lag.Observe(time.Since(published).Seconds())
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
