// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bytes"
	"net"
	"net/http"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
)

// A clientConn is a hijacked HTTP/1.1 connection of a watch. Frames are written to it
// as chunks. net/http would keep buffers and the request for each watch, and copy each write
// twice. The connection is closed after the answer, as its header announces.
//
// A goroutine reads from the connection to see when the client closes it. Bytes that
// the client sends before the end of the answer are dropped; after "Connection: close"
// a client has to expect that (RFC 9112, 9.6).
type clientConn struct {
	conn   net.Conn
	closed chan struct{} // by listen
	scrap  [32]byte      // what the client sends
}

// takeOver hijacks the connection of a request. The caller has set the headers of the
// answer, and head is what is to be written first. c is nil if the connection cannot be
// hijacked: for HTTP/2, for HTTP/1.0, which has no chunks, and for a request with a body.
func takeOver(w http.ResponseWriter, r *http.Request) (c *clientConn, head []byte) {
	if r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Body != http.NoBody {
		return nil, nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil
	}
	var header bytes.Buffer
	header.WriteString("HTTP/1.1 200 OK\r\n")
	_ = w.Header().Write(&header) // to memory
	header.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n" +
		"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
	return &clientConn{conn: conn, closed: make(chan struct{})}, header.Bytes()
}

// Serve answers a request with a watch. The caller has set the headers of the answer. It
// returns when the watch has ended, or when it continues by itself.
func (t *Tracker) Serve(w http.ResponseWriter, r *http.Request, s *Watch) {
	s.tracker = t
	if stream := h2.TakeOver(w); stream != nil {
		s.pulled = pulled{watch: s, stream: stream}
		s.begin(streamOutput{stream})
		s.pulled.Run()
		return
	}
	if conn, head := takeOver(w, r); conn != nil {
		s.gone = conn.closed
		s.begin(conn)
		go conn.serve(s, head)
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
	s.endGzip()
}

// begin registers the watch with the tracker, and sets its output.
func (s *Watch) begin(out output) {
	s.writeTo(out)
	s.timer.begin(out)
	s.tracker.adopt(s)
}

func (s *Watch) writeTo(out output) {
	sink := &httpSink{out: out, timer: &s.timer}
	s.sendTo(sink, sink)
}

func (s *Watch) finish() {
	s.timer.stop()
	s.tracker.part(s)
}

// serve writes the header and the watch.
func (c *clientConn) serve(s *Watch, head []byte) {
	defer s.finish()
	defer s.Close()
	defer c.reset()
	defer s.recovered(nil)
	go c.listen()
	if c.write(head) != nil {
		return
	}
	s.run()
	s.endGzip()
	s.timer.writing()
	_ = c.write([]byte("0\r\n\r\n")) // an error means that the client is gone
	s.timer.written()
}

// listen reads until the client or the gateway closes the connection.
func (c *clientConn) listen() {
	defer close(c.closed)
	for {
		if _, err := c.conn.Read(c.scrap[:]); err != nil {
			return
		}
	}
}

// reset closes the connection and waits for listen to end.
func (c *clientConn) reset() {
	c.conn.Close()
	<-c.closed
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
