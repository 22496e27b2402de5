// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bufio"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/watchkeeper/watchkeeper/internal/request"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

const (
	// gzipThreshold and the level are the API server's.
	gzipThreshold = 128 << 10
	gzipLevel     = gzip.BestSpeed

	// bodyPiece is how much of an answer is written at a time.
	bodyPiece = 256 << 10

	// WriteTimeout is how long a client may take to make room for a piece of an
	// answer before the connection is given up. A client that reads slowly, or
	// pauses, is not; TCP notices a dead machine long before.
	WriteTimeout = 10 * time.Minute
	// HeldTimeout is WriteTimeout where others wait for what the answer holds (T10).
	HeldTimeout = time.Minute
)

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzipLevel) // the level is valid
	return w
}}

var bodyBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bodyPiece) }}

// WriteBody writes the body of an answer whose headers are set, but for its
// encoding. With held, others wait for what the answer holds, and the client has
// less time. A failed write cannot be reported to anybody.
func WriteBody(w http.ResponseWriter, r *http.Request, body *wire.Body, held bool) {
	timeout := WriteTimeout
	if held {
		timeout = HeldTimeout
	}
	out := NewDeadlineWriter(w, timeout)
	defer out.Clear()
	if body.Size() <= gzipThreshold || !request.AcceptsGzip(r) {
		b := bodyBuffers.Get().(*bufio.Writer)
		b.Reset(out)
		if _, err := body.WriteTo(b); err == nil {
			_ = b.Flush()
		}
		b.Reset(io.Discard)
		bodyBuffers.Put(b)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	zip := gzipWriters.Get().(*gzip.Writer)
	zip.Reset(out)
	if _, err := body.WriteTo(zip); err == nil {
		_ = zip.Close()
	}
	zip.Reset(io.Discard)
	gzipWriters.Put(zip)
}

// A DeadlineWriter gives each write a deadline of its own.
type DeadlineWriter struct {
	w       io.Writer
	ctl     *http.ResponseController
	timeout time.Duration
}

// NewDeadlineWriter returns a writer to a response.
func NewDeadlineWriter(w http.ResponseWriter, timeout time.Duration) DeadlineWriter {
	return DeadlineWriter{w, http.NewResponseController(w), timeout}
}

// Write implements io.Writer.
func (d DeadlineWriter) Write(p []byte) (int, error) {
	// Not every ResponseWriter knows deadlines; the net/http ones do.
	_ = d.ctl.SetWriteDeadline(time.Now().Add(d.timeout))
	return d.w.Write(p)
}

// Clear takes the deadline off: an HTTP/2 stream would end at it though
// nothing is waiting, and an HTTP/1.1 connection would keep it for its next
// request.
func (d DeadlineWriter) Clear() { _ = d.ctl.SetWriteDeadline(time.Time{}) }
