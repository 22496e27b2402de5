// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bytes"
	"net"
	"net/http"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/h2"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A clientConn is a hijacked HTTP/1.1 connection of a watch. Frames are written to it
// as chunks. net/http would keep buffers, the request and two goroutines per watch, and
// copy each write twice. The connection is closed after the answer, as its header
// announces.
//
// A goroutine reads from the connection to see when the client closes it. Bytes that
// the client sends before the end of the answer are dropped; after "Connection: close"
// a client has to expect that (RFC 9112, 9.6).
type clientConn struct {
	conn   net.Conn
	header []byte // nil once it is written
	gone   chan struct{}
	scrap  [32]byte // what the client sends
}

// takeOver hijacks the connection of a request. The caller has set the headers of the
// answer. It returns nil if the connection cannot be hijacked: for HTTP/2, for HTTP/1.0,
// which has no chunks, and for a request with a body.
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

// Serve answers a request with a watch. The caller has set the headers of the answer. It
// returns when the watch has ended, or when it continues by itself: on a goroutine of its
// own if the connection was hijacked, or pulled by the writer of an HTTP/2 connection.
func (t *Tracker) Serve(w http.ResponseWriter, r *http.Request, s *Watch) {
	s.tracker = t
	if conn := takeOver(w, r); conn != nil {
		s.gone = conn.gone
		s.begin(conn)
		go s.serveConn(conn)
		return
	}
	if stream := h2.TakeOver(w); stream != nil {
		s.pulled = pulled{watch: s, stream: stream}
		s.begin(streamOutput{stream})
		s.pulled.Run()
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

// begin registers the watch with the tracker, and sets its output.
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

// serveConn writes the watch to a hijacked connection.
func (s *Watch) serveConn(conn *clientConn) {
	defer s.finish()
	defer s.Close()
	defer conn.close()
	defer func() {
		// As in net/http, a panic ends the connection and not the process.
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
	_ = conn.write([]byte("0\r\n\r\n")) // an error means that the client is gone
	s.timer.written()
}

// listen reads until the client or the gateway closes the connection.
func (c *clientConn) listen() {
	defer close(c.gone)
	for {
		if _, err := c.conn.Read(c.scrap[:]); err != nil {
			return
		}
	}
}

// close closes the connection and waits for listen to end.
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

// cut ends writes to a client that does not read. A client that reads receives the
// last writes within lastWrites.
func (c *clientConn) cut() { _ = c.conn.SetWriteDeadline(time.Now().Add(lastWrites)) }
