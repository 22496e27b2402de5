// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"math"
	"net/http"
	"time"
)

// Lines writes lines to a response. It is not safe for concurrent use.
type Lines struct {
	sink  httpSink
	gzip  *gzipOutput // where the sink writes; nil without compression
	timer watchTimer
}

// NewLines sends the header of the response. With gzip it compresses the lines; the
// caller sets Content-Encoding. The caller must close the Lines.
func NewLines(w http.ResponseWriter, gzip bool) (*Lines, error) {
	out, err := newResponseOutput(w)
	if err != nil {
		return nil, err
	}
	l := &Lines{timer: watchTimer{deadline: time.Now().Add(math.MaxInt64)}}
	l.sink = httpSink{out: out, timer: &l.timer}
	if gzip {
		if l.gzip, err = newGzipOutput(out); err != nil {
			return nil, err
		}
		l.sink.out = l.gzip
	}
	l.timer.begin(out)
	return l, nil
}

// Write writes a line, given in parts. It may buffer the line until Flush.
func (l *Lines) Write(parts ...string) error { return l.sink.frame(parts) }

// Flush sends the buffered lines.
func (l *Lines) Flush() error { return l.sink.flush() }

// End sends the buffered lines and the end of the response.
func (l *Lines) End() {
	if l.sink.flush() == nil && l.gzip != nil {
		l.timer.writing()
		_ = l.gzip.end() // an error means that the client is gone
		l.timer.written()
	}
}

// Abort makes the current write and all later ones fail. Unlike the other methods, it
// may be called concurrently with them.
func (l *Lines) Abort() { l.sink.out.abort() }

// Close releases the buffer.
func (l *Lines) Close() {
	l.timer.stop()
	l.sink.release()
}
