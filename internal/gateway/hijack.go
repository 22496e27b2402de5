// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"net"
	"net/http"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A clientConn is an HTTP/1.1 connection that was taken over from net/http for
// a watch, whose frames are written to it as chunks: net/http would keep its
// buffers, the request and two goroutines for each, and copy what is written
// twice. The connection is closed behind the answer, which says so.
//
// A goroutine reads from it, to see that the client has gone away. A client has
// nothing to say: what it sends ahead of the next answer is dropped, as it has
// to reckon with when it is told of the close (RFC 9112, 9.6).
type clientConn struct {
	conn   net.Conn
	header []byte // nil once it is written
	gone   chan struct{}
	scrap  [32]byte // what the client says
}

// takeOver returns the connection of a request whose header is set, nil if it
// is to stay net/http's: that of HTTP/2, of HTTP/1.0, whose answers are not
// chunked, and what a body may follow on.
func takeOver(rec *recorder) *clientConn {
	if r := rec.request; r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Body != http.NoBody {
		return nil
	}
	conn, _, err := rec.Hijack()
	if err != nil {
		return nil
	}
	var header bytes.Buffer
	header.WriteString("HTTP/1.1 200 OK\r\n")
	_ = rec.Header().Write(&header) // to memory
	header.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n" +
		"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
	return &clientConn{conn: conn, header: header.Bytes(), gone: make(chan struct{})}
}

// serve answers a request with the watch, and returns when it has ended, or
// goes on without net/http.
func (s *watchStream) serve(rec *recorder) {
	if conn := takeOver(rec); conn != nil {
		s.gone = conn.gone
		s.begin(rec, conn)
		go s.serveConn(conn, rec.requests)
		return
	}
	defer s.close()
	out, err := newResponseOut(rec)
	if err != nil {
		return
	}
	s.gone = rec.request.Context().Done()
	s.begin(rec, out)
	defer s.finish(rec.requests)
	s.run()
}

// begin has the watch be known to the tracker, and written to out.
func (s *watchStream) begin(rec *recorder, out streamOut) {
	sink := &httpSink{out: out, pulse: &s.pulse}
	s.sink, s.sharer = sink, sink
	s.pulse.begin(out)
	rec.requests.adopt(s)
}

func (s *watchStream) finish(requests *requestTracker) {
	s.pulse.stop()
	requests.part(s)
}

// serveConn writes the watch to a connection that was taken over.
func (s *watchStream) serveConn(conn *clientConn, requests *requestTracker) {
	defer s.finish(requests)
	defer s.close()
	defer conn.close()
	defer func() {
		// As net/http does: the answer is cut, and the gateway goes on.
		if cause := recover(); cause != nil {
			s.cache.log.Error("a watch has failed", "resource", s.res.id.String(), "cause", cause)
		}
	}()
	go conn.listen()
	if conn.write(conn.header) != nil {
		return
	}
	conn.header = nil
	s.run()
	s.pulse.writing()
	_ = conn.write([]byte("0\r\n\r\n")) // a client that is gone does not get it
	s.pulse.written()
}

// listen reads until the client goes away, or the connection is closed.
func (c *clientConn) listen() {
	defer close(c.gone)
	for {
		if _, err := c.conn.Read(c.scrap[:]); err != nil {
			return
		}
	}
}

// close returns when nothing of the connection is left.
func (c *clientConn) close() {
	c.conn.Close()
	<-c.gone
}

func (c *clientConn) writeFrame(f *wire.Frame) error { return c.write(f.Chunk()) }
func (c *clientConn) writeBlock(b *block) error      { return c.write(b.chunk()) }

func (c *clientConn) write(p []byte) error {
	_, err := c.conn.Write(p)
	return err
}

func (c *clientConn) abort() { _ = c.conn.SetDeadline(time.Now()) }

// cut is for a client that does not read; another has what is written by then.
func (c *clientConn) cut() { _ = c.conn.SetWriteDeadline(time.Now().Add(lastWrites)) }
