// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bytes"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
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
	conn    net.Conn
	header  []byte // nil once it is written
	closed  chan struct{}
	scrap   [32]byte        // what the client sends
	raw     syscall.RawConn // writes without waiting; nil if the connection cannot
	writers *writers
	turn    turn // of the writers
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
	c := &clientConn{conn: conn, header: header.Bytes(), closed: make(chan struct{})}
	if direct, ok := conn.(syscall.Conn); ok { // TLS is not
		c.raw, _ = direct.SyscallConn() // nil if it fails
	}
	return c
}

// Serve answers a request with a watch. The caller has set the headers of the answer. It
// returns when the watch has ended, or when it continues by itself.
func (t *Tracker) Serve(w http.ResponseWriter, r *http.Request, s *Watch) {
	s.tracker = t
	if stream := h2.TakeOver(w); stream != nil {
		s.carry(streamCarrier{stream})
		s.pulled.Run()
		return
	}
	if conn := takeOver(w, r); conn != nil {
		conn.writers = &t.writers
		s.carry(conn)
		go conn.serve(&s.pulled)
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

// serve writes the header, and runs the watch until the writers take it.
func (c *clientConn) serve(p *pulled) {
	go c.listen()
	if c.write(c.header) != nil {
		c.reset()
		p.Done()
		return
	}
	c.header = nil
	p.Run()
}

// listen reads until the client or the gateway closes the connection.
func (c *clientConn) listen() {
	defer c.Wake()
	defer close(c.closed)
	for {
		if _, err := c.conn.Read(c.scrap[:]); err != nil {
			return
		}
	}
}

// end ends the answer.
func (c *clientConn) end() {
	_ = c.write([]byte("0\r\n\r\n")) // an error means that the client is gone
	c.reset()
}

// reset closes the connection and waits for listen to end.
func (c *clientConn) reset() {
	c.conn.Close()
	<-c.closed
}

func (c *clientConn) gone() <-chan struct{} { return c.closed }

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
