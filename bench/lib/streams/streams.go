// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package streams opens many watches with as little CPU and memory as possible, since
// the measured servers run on the same machine. It counts the lines of each watch and
// decodes nothing. It reads HTTP/1.1 from the socket, and HTTP/2 as frames, with
// hundreds of streams per connection. The flow control windows have the largest size
// that HTTP/2 allows, so that a server never waits for them.
//
// It implements only the parts of HTTP that Go's servers use. [GoHTTP2] is Go's own client,
// with the windows and the window updates that most clients have.
package streams

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Protocol is how requests are sent.
type Protocol string

// The protocols. HTTP1 has a connection for each watch; GoHTTP2 is HTTP/2, of watches
// with Go's client.
const (
	HTTP1   Protocol = "http1"
	HTTP2   Protocol = "http2"
	GoHTTP2 Protocol = "go-http2"
)

// A Target is a server.
type Target struct {
	Address  string // host:port
	TLS      *tls.Config
	Protocol Protocol
	Header   map[string]string // of every request, in addition to Accept
}

// dial connects. If stamped is set, at returns when the bytes of the connection's last
// Read arrived; otherwise it is time.Now.
func (t Target) dial(ctx context.Context, stamped bool) (conn net.Conn, at func() time.Time, err error) {
	var d net.Dialer
	conn, err = d.DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return nil, nil, err
	}
	at = time.Now
	if tcp, ok := conn.(*net.TCPConn); ok && stamped {
		if conn, at, err = stamp(tcp); err != nil {
			tcp.Close()
			return nil, nil, err
		}
	}
	if t.TLS != nil {
		conn, err = t.secure(ctx, conn)
	}
	return conn, at, err
}

// secure makes a TLS connection of a connection, which it closes on an error.
func (t Target) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
	config := t.TLS.Clone()
	config.NextProtos = []string{"http/1.1"}
	if t.Protocol != HTTP1 {
		config.NextProtos = []string{"h2"}
	}
	if config.ServerName == "" {
		var err error
		if config.ServerName, _, err = net.SplitHostPort(t.Address); err != nil {
			conn.Close()
			return nil, err
		}
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	if got := secure.ConnectionState().NegotiatedProtocol; t.Protocol != HTTP1 && got != "h2" {
		conn.Close()
		return nil, fmt.Errorf("%s speaks %q, not h2", t.Address, got)
	}
	return secure, nil
}

// Options select the watches of a Set.
type Options struct {
	// Paths has the path and query of each watch.
	Paths []string
	// PerConnection is the maximum number of streams of an HTTP/2 connection; 0
	// means the server's limit.
	PerConnection int
	// Observe, if not nil, is called for each line with the index of the watch, the
	// first resourceVersion in the line, and the time at which the line's end arrived:
	// on Linux, when the kernel received it, not when this process read it. Calls for one watch are in sequence;
	// calls for different watches may be concurrent.
	Observe func(watch int, rv uint64, at time.Time)
	// Header, if not nil, returns the header of a watch, in addition to the Target's.
	Header func(watch int) map[string]string
	// Ended, if not nil, is called when a watch ends before Close. The error is nil at
	// the end of its body.
	Ended func(watch int, at time.Time, err error)
}

func (o *Options) header(watch int) map[string]string {
	if o.Header == nil {
		return nil
	}
	return o.Header(watch)
}

// A Set is a number of open watches.
type Set struct {
	watches []watch
	closing atomic.Bool

	mu    sync.Mutex // guards conns and cut
	conns []net.Conn
	cut   error // of the first watch that ended before Close

	reading sync.WaitGroup
}

// parallel is the number of connections that are opened at the same time.
const parallel = 8

// Open opens watches and returns when each has received its header.
func Open(ctx context.Context, t Target, o Options) (*Set, error) {
	s := &Set{watches: make([]watch, len(o.Paths))}
	for i := range s.watches {
		w := &s.watches[i]
		w.set = s
		if o.Observe != nil {
			w.observe = func(rv uint64, at time.Time) { o.Observe(i, rv, at) }
		}
		if o.Ended != nil {
			w.left = func(err error) { o.Ended(i, time.Now(), err) }
		}
	}
	open := s.open1
	switch t.Protocol {
	case HTTP2:
		open = s.open2
	case GoHTTP2:
		open = s.openGo
	}
	if err := open(ctx, t, o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// add registers a connection for Close.
func (s *Set) add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
}

// Close ends the watches. The counts stay.
func (s *Set) Close() {
	s.closing.Store(true)
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.reading.Wait()
}

// Counts are the numbers of lines that the watches received.
type Counts struct {
	Total    int64
	Min, Max int64 // of a single watch
	Cut      int   // watches that ended before Close
	Err      error // of the first of these
}

// Counts returns the current numbers.
func (s *Set) Counts() Counts {
	var c Counts
	for i := range s.watches {
		n := s.watches[i].events.Load()
		if i == 0 {
			c.Min, c.Max = n, n
		}
		c.Total += n
		c.Min, c.Max = min(c.Min, n), max(c.Max, n)
		if s.watches[i].ended.Load() {
			c.Cut++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Err = s.cut
	return c
}

// Wait waits until the watches have received n lines in total, a watch has ended, or
// the time is up. It returns the counts, and an error if the total is not n.
func (s *Set) Wait(n int64, timeout time.Duration) (Counts, error) {
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		c := s.Counts()
		switch {
		case c.Cut > 0:
			return c, fmt.Errorf("%d of %d watches were cut: %w", c.Cut, len(s.watches), c.Err)
		case c.Total > n:
			return c, fmt.Errorf("%d lines were received instead of %d", c.Total, n)
		case c.Total == n:
			return c, nil
		case time.Since(start) > timeout:
			return c, fmt.Errorf("%d of %d lines were received within %v", c.Total, n, timeout)
		}
	}
}

// WaitEach is Wait for n lines at every watch.
func (s *Set) WaitEach(n int64, timeout time.Duration) (Counts, error) {
	c, err := s.Wait(n*int64(len(s.watches)), timeout)
	if err == nil && c.Min != c.Max {
		err = fmt.Errorf("a watch received between %d and %d lines instead of %d", c.Min, c.Max, n)
	}
	return c, err
}

// A receiver handles one response.
type receiver interface {
	header(status int)
	data(p []byte)
	end(err error) // nil at the end of the body
}

// A watch is the receiver of a watch's response.
type watch struct {
	lines
	set    *Set
	opened func(status int) // called once
	left   func(error)      // called when it ends before Close; may be nil
	ended  atomic.Bool
}

func (w *watch) header(status int) { w.opened(status) }

func (w *watch) end(err error) {
	if w.set.closing.Load() {
		return
	}
	if w.left != nil {
		w.left(err)
	}
	if err == nil {
		err = io.EOF
	}
	w.set.mu.Lock()
	if w.set.cut == nil {
		w.set.cut = err
	}
	w.set.mu.Unlock()
	w.ended.Store(true)
}
