// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// cancelled is the code of a stream that the server gives up.
const cancelled = http2.ErrCodeCancel

var (
	errConnection = errors.New("http2: the connection has ended")
	errReset      = errors.New("http2: the client has reset the stream")
	errGivenUp    = errors.New("http2: the stream was given up")
)

// A state is that of a stream (RFC 9113, 5.1).
type state uint8

const (
	open             state = iota
	halfClosedRemote       // the client has sent everything
	halfClosedLocal        // the server has
	closed
)

// receives reports whether the client may send DATA.
func (s state) receives() bool { return s == open || s == halfClosedLocal }

// A handlerState says whether the handler of a stream runs.
type handlerState uint8

const (
	returned handlerState = iota
	running
	orphaned // it runs, and the stream was closed before its end
)

// A Stream is one request with its response.
type Stream struct {
	c  *conn
	id uint32

	// window is how many bytes the client accepts. The reader adds to it, the writer
	// subtracts.
	window atomic.Int64
	// blocked is set while the writer waits for the window.
	blocked atomic.Bool

	queued bool // in conn.ready; guarded by conn.readyMu

	// For the writer only:
	active  Feed   // the feed that it pulls; nil for none
	rest    string // of what the feed returned, what could not be sent yet
	sending bool   // it is in the batch, and active has to know when that is written

	// Guarded by conn.mu:
	feed       Feed // nil while a handler or the owner writes
	state      state
	handler    handlerState
	headerIn   uint64 // the number of the batch that has the header of the response; 0 while there is none
	err        error  // why it is closed; for Write and for the request's body
	gone       chan struct{}
	out        *outgoing // nil while a feed is pulled
	in         *incoming // nil if the request has no body, and after the handler
	cancelFunc context.CancelFunc
}

// An outgoing is what a handler wants to write. It is guarded by conn.mu.
type outgoing struct {
	pending  []byte // not yet taken by the writer
	end      bool   // END_STREAM follows
	changed  sync.Cond
	deadline *time.Timer // of writes; nil for none
	late     bool        // the deadline has passed
}

func (c *conn) newOutgoing() *outgoing {
	o := &outgoing{}
	o.changed.L = &c.mu
	return o
}

// send sends p, and END_STREAM with end, and waits until the writer has taken them.
func (st *Stream) send(p []byte, end bool) (int, error) {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	o := st.out
	switch {
	case st.state == closed:
		return 0, st.err
	case o == nil || st.state == halfClosedLocal:
		return 0, errGivenUp
	case o.late:
		return 0, os.ErrDeadlineExceeded
	}
	o.pending, o.end = p, end
	c.enqueue(st)
	for (len(o.pending) > 0 || o.end) && st.state != closed {
		o.changed.Wait()
	}
	rest := len(o.pending)
	o.pending, o.end = nil, false
	switch {
	case rest == 0:
		return len(p), nil
	case o.late:
		return len(p) - rest, os.ErrDeadlineExceeded
	}
	return len(p) - rest, st.err
}

// setWriteDeadline implements http.ResponseController's: the stream is reset at the
// deadline, as by net/http.
func (st *Stream) setWriteDeadline(t time.Time) {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	o := st.out
	if o == nil || st.state == closed {
		return
	}
	if o.deadline != nil {
		o.deadline.Stop()
		o.deadline = nil
	}
	if t.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(t), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if o.deadline == timer && st.state != closed { // it was not changed meanwhile
			o.late = true
			c.resetLocked(st, http2.ErrCodeInternal)
		}
	})
	o.deadline = timer
}

// reset ends a stream with RST_STREAM.
func (c *conn) reset(st *Stream, code http2.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetLocked(st, code)
}

func (c *conn) resetLocked(st *Stream, code http2.ErrCode) {
	if st.state == closed {
		return
	}
	c.controlLocked(appendReset(nil, st.id, code))
	c.closeLocked(st, errGivenUp, closedHere)
}

// endLocked notes that END_STREAM is on its way to the client. A client that still sends
// the request is told to stop.
func (c *conn) endLocked(st *Stream) {
	switch {
	case st.state == closed:
	case st.state == halfClosedRemote:
		c.closeLocked(st, errGivenUp, closedOrderly)
	case st.in == nil || st.in.unwanted:
		c.controlLocked(appendReset(nil, st.id, http2.ErrCodeNo))
		c.closeLocked(st, errGivenUp, closedHere)
	default:
		st.state = halfClosedLocal
	}
}

// closeLocked forgets a stream, and wakes all who wait for it.
func (c *conn) closeLocked(st *Stream, why error, how ending) {
	if st.state == closed {
		return
	}
	st.state, st.err = closed, why
	if st.handler == running && how != closedOrderly {
		st.handler = orphaned
		c.orphans++
	}
	delete(c.streams, st.id)
	c.readyMu.Lock()
	delete(c.blocked, st)
	c.readyMu.Unlock()
	c.closed.add(st.id, how)
	if st.gone != nil {
		close(st.gone)
	}
	if o := st.out; o != nil {
		if o.deadline != nil {
			o.deadline.Stop()
		}
		o.changed.Broadcast()
	}
	if st.in != nil {
		c.dropBodyLocked(st.in)
		st.in.end(fmt.Errorf("reading the request: %w", why))
	}
	if cancel := st.cancelFunc; cancel != nil && how != closedOrderly {
		st.cancelFunc = nil
		go cancel() // what depends on the context may take locks
	}
	if st.feed != nil {
		c.ended++
		c.enqueue(st)
	}
	if len(c.streams) == 0 {
		c.idleLocked()
	}
}

// An ending is how a stream was closed.
type ending uint8

const (
	unknown       ending = iota
	closedOrderly        // both sides have sent everything
	closedThere          // the client reset it
	closedHere           // the server reset it: frames of the client may still be on their way
)

// closedStreams remembers how the last maxClosed streams were closed.
type closedStreams struct {
	next int // the oldest, if all places are taken
	last []closedStream
}

type closedStream struct {
	id  uint32
	how ending
}

func (s *closedStreams) add(id uint32, how ending) {
	if len(s.last) < maxClosed {
		s.last = append(s.last, closedStream{id, how})
		return
	}
	s.last[s.next] = closedStream{id, how}
	s.next = (s.next + 1) % maxClosed
}

func (s *closedStreams) ending(id uint32) ending {
	for _, closed := range s.last {
		if closed.id == id {
			return closed.how
		}
	}
	return unknown
}
