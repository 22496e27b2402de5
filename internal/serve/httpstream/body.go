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

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

const (
	// gzipThreshold and gzipLevel are those of the API server.
	gzipThreshold = 128 << 10
	gzipLevel     = gzip.BestSpeed

	// bodyPiece is the size of one write of an answer.
	bodyPiece = 256 << 10

	// WriteTimeout is how long one write to a client may block before the connection
	// is closed, and how long a watch may last beyond its time because its client does
	// not read. It is generous to clients that read slowly or pause; TCP notices a dead
	// machine long before.
	WriteTimeout = 10 * time.Minute
	// HeldTimeout is the WriteTimeout of an answer that holds a slot for which other
	// requests wait (T10).
	HeldTimeout = time.Minute
	// minRate is how many bytes per second a client has to take while it makes the
	// gateway wait. kube-apiserver ends a list after a minute, whatever its size: for a
	// list of 100 MB, that is 30 times this rate.
	minRate = 64 << 10
)

// atMinRate returns how long n bytes take at minRate.
func atMinRate(n int64) time.Duration { return time.Duration(n) * (time.Second / minRate) }

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzipLevel) // the level is valid
	return w
}}

var bodyBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bodyPiece) }}

// WriteBody writes the body of an answer, compressed if it is large and the client
// accepts gzip. The caller has set the headers, except for Content-Encoding. held is
// set if the answer holds a slot: then writes have HeldTimeout. A slow client is cut as
// [DeadlineWriter] says. A failed write is not reported, since the client is gone. turn is
// that of the caller, nil for none; it is held to compress the body.
func WriteBody(w http.ResponseWriter, r *http.Request, body *wire.Body, held bool, turn *fairness.Turn) {
	timeout := WriteTimeout
	if held {
		timeout = HeldTimeout
	}
	out := NewDeadlineWriter(w, timeout)
	defer out.Clear()
	defer turn.End()
	b := bodyBuffers.Get().(*bufio.Writer) // also for gzip, which writes a quarter of a kilobyte at a time
	defer func() {
		b.Reset(io.Discard)
		bodyBuffers.Put(b)
	}()
	if body.Size() <= gzipThreshold || !request.AcceptsGzip(r) {
		turn.End()
		b.Reset(out)
		if _, err := body.WriteTo(b); err == nil {
			_ = b.Flush()
		}
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	b.Reset(turn.Waiting(out))
	zip := gzipWriters.Get().(*gzip.Writer)
	zip.Reset(b)
	if _, err := body.WriteTo(turn.Working(zip)); err == nil && zip.Close() == nil {
		_ = b.Flush()
	}
	zip.Reset(io.Discard)
	gzipWriters.Put(zip)
}

// ReadBody reads the body of a request, which has to arrive within a time. Of one that is
// longer than the limit, in bytes, the error is a [*http.MaxBytesError].
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration) ([]byte, error) {
	ctl := http.NewResponseController(w)
	ctl.SetReadDeadline(time.Now().Add(within)) //nolint:errcheck // a test's writer has none
	// Later, the deadline would end the request, or the next one of the connection.
	defer ctl.SetReadDeadline(time.Time{}) //nolint:errcheck // see above
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
}

// A DeadlineWriter bounds how long an answer makes the gateway wait for its client:
// each write, of [bodyPiece] at the most, by the timeout, and all writes together by the
// timeout and the time that their bytes take at [minRate]. So a client that reads a little before each deadline
// does not hold the answer, and what it was written from, for longer, and a large answer
// has the time that it needs. The time between writes does not count. It is not safe
// for concurrent use.
type DeadlineWriter struct {
	w       io.Writer
	ctl     *http.ResponseController
	timeout time.Duration
	written int64
	waited  time.Duration // in writes
}

// NewDeadlineWriter returns a writer to a response.
func NewDeadlineWriter(w http.ResponseWriter, timeout time.Duration) *DeadlineWriter {
	return &DeadlineWriter{w: w, ctl: http.NewResponseController(w), timeout: timeout}
}

// Write implements io.Writer.
func (d *DeadlineWriter) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		piece := p[n:min(n+bodyPiece, len(p))]
		start := time.Now()
		// This fails only for a ResponseWriter that is not net/http's.
		_ = d.ctl.SetWriteDeadline(start.Add(min(d.timeout, d.timeout+atMinRate(d.written+int64(len(piece)))-d.waited)))
		var m int
		m, err = d.w.Write(piece)
		n += m
		d.written += int64(m)
		d.waited += time.Since(start)
	}
	return n, err
}

// Clear removes the deadline. Otherwise an HTTP/2 stream would end at it although no
// write is blocked, and an HTTP/1.1 connection would keep it for its next request.
func (d *DeadlineWriter) Clear() { _ = d.ctl.SetWriteDeadline(time.Time{}) }
