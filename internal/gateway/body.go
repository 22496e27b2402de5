// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/watchkeeper/watchkeeper/internal/wire"
)

const (
	// gzipThreshold and the level are the API server's.
	gzipThreshold = 128 << 10
	gzipLevel     = gzip.BestSpeed

	// bodyPiece is how much of an answer is written at a time.
	bodyPiece = 256 << 10

	// WriteTimeout is how long a client may take to make room for a piece of
	// an answer before it is given up as dead. One that reads slowly, or
	// pauses, is not; a dead machine is noticed by TCP long before.
	WriteTimeout = 10 * time.Minute
	// heldTimeout is that where others wait for what the answer holds (T10).
	heldTimeout = time.Minute
)

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzipLevel) // the level is valid
	return w
}}

var bodyBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bodyPiece) }}

// writeBody writes the answer to a GET or LIST. A write that fails has nobody
// left to be told.
func writeBody(w http.ResponseWriter, r *http.Request, rd *read, body *wire.Body) {
	setHeaders(w.Header(), rd)
	out := newDeadlineWriter(w, WriteTimeout)
	if rd.awaited {
		out.timeout = heldTimeout
	}
	defer out.clear()
	if body.Size() <= gzipThreshold || !acceptsGzip(r) {
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

// acceptsGzip is the API server's rule: the exact token, without a weight.
func acceptsGzip(r *http.Request) bool {
	for token := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}

func setHeaders(h http.Header, rd *read) {
	h.Set("Content-Type", rd.form.ContentType(rd.verb == verbWatch))
	h.Set("Cache-Control", "no-cache, private")
	rd.warn(h)
}

// warn tells the client what the API server would warn of.
func (rd *read) warn(h http.Header) {
	for _, warning := range rd.warnings {
		h.Add("Warning", warning)
	}
}

// A deadlineWriter gives each write a deadline of its own.
type deadlineWriter struct {
	w       io.Writer
	ctl     *http.ResponseController
	timeout time.Duration
}

func newDeadlineWriter(w http.ResponseWriter, timeout time.Duration) deadlineWriter {
	return deadlineWriter{w, http.NewResponseController(w), timeout}
}

func (d deadlineWriter) Write(p []byte) (int, error) {
	// Not every ResponseWriter knows deadlines; the net/http ones do.
	_ = d.ctl.SetWriteDeadline(time.Now().Add(d.timeout))
	return d.w.Write(p)
}

// clear takes the deadline off: an HTTP/2 stream would end at it though
// nothing is waiting, and an HTTP/1.1 connection would keep it for its next
// request.
func (d deadlineWriter) clear() { _ = d.ctl.SetWriteDeadline(time.Time{}) }
