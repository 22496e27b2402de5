// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// lingerTime is how long a connection that the server has closed may take to receive
	// the last frames. If the server did not read meanwhile, TCP would drop them.
	lingerTime = time.Second
	// prefaceTime is how long a client may take to begin.
	prefaceTime = 10 * time.Second
)

// The two steps of a connection's orderly end (RFC 9113, 6.8).
const (
	notDrained  = iota
	firstGoAway // the client is to stop, but its requests on the way are served
	finalGoAway // later requests are ignored
)

// A conn is a connection.
type conn struct {
	server  *Server
	handler http.Handler
	base    context.Context // of all requests
	net     net.Conn
	gather  *gatherConn          // below TLS; nil if there is none
	tls     *tls.ConnectionState // nil without TLS
	remote  string

	// For the reader only:
	in      source
	framer  *http2.Framer
	headers headerReader
	noise   budget
	resets  budget
	unacked int   // SETTINGS that the client has not acknowledged
	late    int64 // WINDOW_UPDATEs on closed streams

	window     atomic.Int64  // as Stream.window, of the connection
	sent       atomic.Int64  // bytes of DATA
	deadline   time.Time     // of writes; for the writer only
	wakes      atomic.Uint64 // since the writer has looked; it does not run while there are none
	writerDone chan struct{} // closed when it does not run any more

	readyMu sync.Mutex // guards the fields below; a leaf
	ready   []*Stream  // to be served
	// blocked wait for the connection's window; nil for none.
	blocked map[*Stream]struct{}

	mu          sync.Mutex // guards the fields below
	streams     map[uint32]*Stream
	closed      closedStreams
	maxID       uint32 // of the client's streams
	orphans     int    // handlers that run although their stream has ended
	initial     int64  // SETTINGS_INITIAL_WINDOW_SIZE of the client
	unread      int    // what the client may still send of request bodies
	returned    int    // of it, what was read and not yet given back
	control     []byte // frames that are no DATA
	replies     int    // of them, those that the client asks for
	batch       uint64 // the number of the last batch
	encoder     *hpack.Encoder
	encoded     bytes.Buffer
	feeds       int
	ended       int // of them, those of streams that have ended
	held        int // bytes of the headers of running handlers
	drained     int
	failed      bool // GOAWAY with an error was queued
	halfClosed  bool // nothing more is written
	over        bool // nothing more is read
	writerEnded bool
	idle        *time.Timer
}

// init prepares a connection. It may be drained afterwards.
func (c *conn) init() {
	c.writerDone = make(chan struct{})
	c.streams = map[uint32]*Stream{}
	c.noise = newBudget(idleFrames, idleFramesPerSecond)
	c.resets = newBudget(max(resets, float64(c.server.maxStreams)), resetsPerSecond)
	c.initial, c.unread = 65535, connWindow
	c.window.Store(65535)
	c.encoder = hpack.NewEncoder(&c.encoded)
	c.encoder.SetMaxDynamicTableSizeLimit(tableSize)
	c.headers.init(c.server.maxHeaderBytes)
	c.greet()
}

// serve serves a connection until it ends.
func (c *conn) serve() {
	in := bufio.NewReaderSize(&c.in, 1<<10)
	c.in.from = c.net
	c.framer = http2.NewFramer(nil, in)
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(maxFrameSize)
	if c.server.idleTimeout > 0 {
		c.idle = time.AfterFunc(c.server.idleTimeout, c.drainIfIdle)
		defer c.idle.Stop()
	}
	c.wakeWriter()
	err := c.read(in)
	c.linger()
	c.end(err)
	<-c.writerDone
	c.net.Close()
}

// greet queues the first frames.
func (c *conn) greet() {
	settings := []http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: c.server.maxStreams},
		{ID: http2.SettingMaxHeaderListSize, Val: uint32(c.server.maxHeaderBytes)},
		{ID: http2.SettingInitialWindowSize, Val: streamWindow},
		{ID: http2.SettingNoRFC7540Priorities, Val: 1},
	}
	b := appendHeader(nil, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(s.ID)), s.Val)
	}
	c.unacked++
	c.control = appendWindowUpdate(b, 0, connWindow-65535)
}

// read reads frames until the connection ends, or breaks the protocol.
func (c *conn) read(in io.Reader) error {
	_ = c.net.SetReadDeadline(time.Now().Add(prefaceTime))
	if c.tls != nil { // otherwise net/http has read it
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(in, preface); err != nil {
			return err
		}
		if string(preface) != http2.ClientPreface {
			c.fail(http2.ErrCodeProtocol, "no HTTP/2 preface")
			return nil
		}
	}
	for first := true; ; first = false {
		fh, err := c.framer.ReadFrameHeader()
		if err == nil && first && (fh.Type != http2.FrameSettings || fh.Flags.Has(http2.FlagSettingsAck)) {
			err = connectionError{http2.ErrCodeProtocol, "the first frame is not SETTINGS"}
		}
		var frame http2.Frame
		if err == nil {
			frame, err = c.framer.ReadFrameForHeader(fh)
		}
		if err == nil {
			err = c.process(frame)
		}
		if first {
			c.begun()
		}
		if err := c.judge(fh, err); err != nil {
			return err
		}
		if c.isFailed() {
			return nil
		}
	}
}

// begun ends the time that a client has to begin, unless the connection is already closed for
// writing, which sets another one.
func (c *conn) begun() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.halfClosed {
		_ = c.net.SetReadDeadline(time.Time{})
	}
}

// A source remembers how reading ended.
type source struct {
	from io.Reader
	err  error
}

func (s *source) Read(p []byte) (n int, err error) {
	n, s.err = s.from.Read(p)
	return n, s.err
}

// A connectionError ends the connection.
type connectionError struct {
	code http2.ErrCode
	why  string
}

func (e connectionError) Error() string { return e.why }

// judge answers a frame that breaks the protocol. It returns an error if nothing can be
// read any more.
func (c *conn) judge(fh http2.FrameHeader, err error) error {
	if err == nil {
		return nil
	}
	var detail string
	if d := c.framer.ErrorDetail(); d != nil {
		detail = d.Error()
	}
	if e, ok := errors.AsType[http2.StreamError](err); ok {
		if fh.Type == http2.FrameHeaders && e.Cause == nil {
			// The header block was not decoded, so that the tables differ from now on.
			c.fail(e.Code, detail)
			return nil
		}
		c.refuse(e.StreamID, e.Code)
		return nil
	}
	switch e := err.(type) {
	case http2.ConnectionError:
		c.fail(http2.ErrCode(e), detail)
	case connectionError:
		c.fail(e.code, e.why)
	default:
		switch {
		case errors.Is(err, http2.ErrFrameTooLarge):
			c.fail(http2.ErrCodeFrameSize, "the frame is too large")
		case errors.Is(err, io.ErrUnexpectedEOF) && c.in.err == nil:
			// The framer's way to say that a payload is too short for its fields.
			c.fail(http2.ErrCodeFrameSize, "the frame is too short")
		default:
			return err
		}
	}
	return nil
}

// refuse resets a stream that breaks the protocol.
func (c *conn) refuse(id uint32, code http2.ErrCode) {
	if !c.resets.spend() {
		c.fail(http2.ErrCodeEnhanceYourCalm, "too many streams are reset")
		return
	}
	c.mu.Lock()
	st, err := c.streamLocked(id)
	switch {
	case err != nil: // RST_STREAM may not be sent for an idle stream
	case st != nil:
		c.resetLocked(st, code)
	default:
		c.closed.add(id, closedHere)
		c.controlLocked(appendReset(nil, id, code))
	}
	c.mu.Unlock()
	if err != nil {
		c.fail(http2.ErrCodeProtocol, err.Error())
	}
}

// controlLocked queues frames that are no DATA.
func (c *conn) controlLocked(frames []byte) {
	if !c.failed {
		c.control = append(c.control, frames...)
		c.wakeWriter()
	}
}

// reply queues an answer to a frame of the client.
func (c *conn) reply(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replies++; c.replies > maxReplies {
		return connectionError{http2.ErrCodeEnhanceYourCalm, "the client asks for answers and does not read them"}
	}
	c.controlLocked(frame)
	return nil
}

// fail ends the connection with an error.
func (c *conn) fail(code http2.ErrCode, why string) {
	c.server.logf("http2: connection of %s: %v: %s", c.remote, code, why)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed {
		return
	}
	c.control = appendGoAway(c.control, c.maxID, code, why)
	c.failed = true
	c.closeAllLocked(connectionError{code, "http2: " + why})
	// A client that does not read must not keep the writer.
	_ = c.net.SetWriteDeadline(time.Now().Add(lingerTime))
	c.wakeWriter()
}

func (c *conn) isFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *conn) closeAllLocked(why error) {
	for _, st := range c.streams {
		c.closeLocked(st, why, closedThere)
	}
}

// end ends what the connection has open. The writer then ends as well.
func (c *conn) end(why error) {
	if why == nil || errors.Is(why, io.EOF) {
		why = errConnection
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		c.closeAllLocked(why)
		now := time.Now()
		_ = c.net.SetDeadline(now) // ends a write, and a read if the writer has failed
	}
	c.wakeWriter()
}

// closeWrite tells the client that nothing follows.
func (c *conn) closeWrite() {
	if w, ok := c.net.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
	_ = c.net.SetReadDeadline(time.Now().Add(lingerTime))
}

// linger reads until the client has received the last frames, if the connection failed.
func (c *conn) linger() {
	if c.isFailed() {
		_ = c.net.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.Copy(io.Discard, c.net)
	}
}

// drain ends the connection when its requests have ended.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drained != notDrained || c.failed || c.over {
		return
	}
	c.drained = firstGoAway
	b := appendGoAway(nil, 1<<31-1, http2.ErrCodeNo, "")
	c.controlLocked(append(appendHeader(b, len(drainPing), http2.FramePing, 0, 0), drainPing...))
	// A client that does not answer the PING has had enough time.
	time.AfterFunc(lingerTime, c.drainFinally)
}

// drainPing is the PING whose answer shows that the client knows of the first GOAWAY.
const drainPing = "draining"

// drainFinally is the second step.
func (c *conn) drainFinally() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drained == firstGoAway && !c.failed && !c.over {
		c.drained = finalGoAway // so maxID remains
		c.controlLocked(appendGoAway(nil, c.maxID, http2.ErrCodeNo, ""))
	}
}

// idleLocked is called when no stream is left.
func (c *conn) idleLocked() {
	if c.drained == finalGoAway {
		c.wakeWriter() // to close the connection
	} else if c.idle != nil {
		c.idle.Reset(c.server.idleTimeout)
	}
}

func (c *conn) drainIfIdle() {
	c.mu.Lock()
	idle := len(c.streams) == 0
	c.mu.Unlock()
	if idle {
		c.drain()
	}
}
