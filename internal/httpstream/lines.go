// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"math"
	"net/http"
	"time"
)

// Lines writes lines to a response, for a client that may be slow. It is not safe
// for concurrent use.
type Lines struct {
	sink  httpSink
	gzip  *gzipOutput // where the sink writes; nil without compression
	timer watchTimer
}

// NewLines sends the header of the response. With gzip the lines are compressed, and
// Content-Encoding has to say so. The Lines have to be closed.
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

// Write takes a line, in parts. It may keep it until Flush.
func (l *Lines) Write(parts ...string) error { return l.sink.frame(parts) }

// Flush writes what Write took.
func (l *Lines) Flush() error { return l.sink.flush() }

// End writes the end of the response, and flushes it.
func (l *Lines) End() {
	if l.sink.flush() == nil && l.gzip != nil {
		l.timer.writing()
		_ = l.gzip.end() // a client that is gone does not get it
		l.timer.written()
	}
}

// Close gives back what the lines hold.
func (l *Lines) Close() {
	l.timer.stop()
	l.sink.release()
}
