// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

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
// twice. The connection is closed after the answer, whose header announces that.
//
// A goroutine reads from it, to see when the client goes away. What a client sends
// before the end of the answer is dropped, as it has to expect after that header
// (RFC 9112, 9.6).
type clientConn struct {
	conn   net.Conn
	header []byte // nil once it is written
	gone   chan struct{}
	scrap  [32]byte // what the client sends
}

// takeOver returns the connection of a request whose header is set, nil if it stays
// net/http's: that of HTTP/2, of HTTP/1.0, whose answers are not chunked, and one on
// which a body may follow.
func takeOver(w http.ResponseWriter, r *http.Request) *clientConn {
	if r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Body != http.NoBody {
		return nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	var header bytes.Buffer
	header.WriteString("HTTP/1.1 200 OK\r\n")
	_ = w.Header().Write(&header) // to memory
	header.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n" +
		"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
	return &clientConn{conn: conn, header: header.Bytes(), gone: make(chan struct{})}
}

// Serve answers a request with a watch whose headers are set. It returns when the
// watch has ended, or goes on without net/http.
func (t *Tracker) Serve(w http.ResponseWriter, r *http.Request, s *Watch) {
	s.tracker = t
	if conn := takeOver(w, r); conn != nil {
		s.gone = conn.gone
		s.begin(conn)
		go s.serveConn(conn)
		return
	}
	defer s.Close()
	out, err := newResponseOutput(w)
	if err != nil {
		return
	}
	s.gone = r.Context().Done()
	s.begin(out)
	defer s.finish()
	s.run()
}

// begin makes the watch known to the tracker, and writes it to out.
func (s *Watch) begin(out output) {
	sink := &httpSink{out: out, timer: &s.timer}
	s.sink, s.sharer = sink, sink
	s.timer.begin(out)
	s.tracker.adopt(s)
}

func (s *Watch) finish() {
	s.timer.stop()
	s.tracker.part(s)
}

// serveConn writes the watch to a connection that was taken over.
func (s *Watch) serveConn(conn *clientConn) {
	defer s.finish()
	defer s.Close()
	defer conn.close()
	defer func() {
		// As in net/http, the answer is cut and the gateway goes on.
		if cause := recover(); cause != nil {
			s.tracker.log.Error("panic in a watch", "resource", s.Encoder.Resource.String(), "panic", cause)
		}
	}()
	go conn.listen()
	if conn.write(conn.header) != nil {
		return
	}
	conn.header = nil
	s.run()
	s.timer.writing()
	_ = conn.write([]byte("0\r\n\r\n")) // a client that is gone does not get it
	s.timer.written()
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

// cut is for a client that does not read; others have received everything by then.
func (c *clientConn) cut() { _ = c.conn.SetWriteDeadline(time.Now().Add(lastWrites)) }
