// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/httpstream"
)

const (
	// maxGathered is the number of bytes that may wait to be written. A write has
	// about as many.
	maxGathered = 64 << 10
	// flushTimeout is how long waiting bytes may be written after Close.
	flushTimeout = time.Second
)

// gatherSoon is the time within which a write must follow another to be gathered.
const gatherSoon = time.Millisecond

// A gatherListener accepts connections that gather writes if the client uses
// HTTP/2. net/http writes each frame of each stream separately, and most of the
// cost is in the system call. With gathering, an event for a hundred watches on a
// connection takes a few calls.
type gatherListener struct {
	net.Listener
	flushing sync.WaitGroup // writes in the background
}

func (l *gatherListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatherConn{Conn: conn, flushing: &l.flushing}, nil
}

// gatherHTTP2 is a tls.Config's GetConfigForClient. It does not change the config;
// it makes the connection gather if HTTP/2 will be negotiated.
func gatherHTTP2(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if c, ok := hello.Conn.(*gatherConn); ok && slices.Contains(hello.SupportedProtos, "h2") {
		c.gathers.Store(true)
	}
	return nil, nil
}

// A gatherConn that gathers collects writes that soon follow others, until the
// other goroutines have run, and writes them in the background. A Write may then
// return the error of an earlier one. One goroutine at a time may write, as with
// a tls.Conn.
type gatherConn struct {
	net.Conn
	gathers  atomic.Bool
	flushing *sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	room     *sync.Cond // signals free space or an error; nil before the first wait
	waits    []byte
	last     time.Time // time of the last write
	deadline time.Time // of writes
	active   bool      // a goroutine is writing
	closed   bool
	err      error
}

// gatherBuffers are shared: a connection needs one only while bytes wait.
var gatherBuffers = sync.Pool{New: func() any { b := make([]byte, 0, maxGathered+20<<10); return &b }}

func (c *gatherConn) Write(p []byte) (int, error) {
	if !c.gathers.Load() {
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	soon := now.Sub(c.last) < gatherSoon
	c.last = now
	for len(c.waits) >= maxGathered && c.err == nil {
		if c.room == nil {
			c.room = sync.NewCond(&c.mu)
		}
		c.room.Wait()
	}
	switch {
	case c.err != nil:
		return 0, c.err
	case c.closed:
		return 0, net.ErrClosed
	case !soon && !c.active:
		c.active = true
		c.writeLocked(p, now)
		c.doneLocked()
		if c.err != nil {
			return 0, c.err
		}
		return len(p), nil
	}
	if c.waits == nil {
		c.waits = *gatherBuffers.Get().(*[]byte)
	}
	c.waits = append(c.waits, p...)
	if !c.active {
		c.active = true
		c.flushing.Go(c.flush)
	}
	return len(p), nil
}

// flush writes until no bytes wait.
func (c *gatherConn) flush() {
	runtime.Gosched() // lets goroutines write first that are about to
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && len(c.waits) > 0 {
		out := c.waits
		c.waits = nil
		c.writeLocked(out, time.Now())
		out = out[:0]
		gatherBuffers.Put(&out)
	}
	c.doneLocked()
}

// writeLocked releases the lock during the write.
func (c *gatherConn) writeLocked(p []byte, now time.Time) {
	if !c.closed && c.deadline.Sub(now) < httpstream.WriteTimeout { // rarely, because setting a deadline is expensive
		c.deadline = now.Add(httpstream.WriteTimeout * 3 / 2)
		_ = c.Conn.SetWriteDeadline(c.deadline)
	}
	c.mu.Unlock()
	_, err := c.Conn.Write(p)
	c.mu.Lock()
	c.err = err
	if c.room != nil {
		c.room.Broadcast()
	}
}

// doneLocked is called when no bytes wait.
func (c *gatherConn) doneLocked() {
	c.active = false
	if c.closed {
		c.Conn.Close()
	}
}

// Close closes the connection after waiting bytes are written.
func (c *gatherConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.active {
		_ = c.Conn.SetReadDeadline(time.Now())
		return c.Conn.SetWriteDeadline(time.Now().Add(flushTimeout))
	}
	return c.Conn.Close()
}

// SetWriteDeadline has no effect on a connection that gathers, which sets its own
// deadlines.
func (c *gatherConn) SetWriteDeadline(t time.Time) error {
	if c.gathers.Load() {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both deadlines.
func (c *gatherConn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}
