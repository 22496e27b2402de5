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
	// gatherMost is how much waits to be written at the most, and about how
	// much is written at once.
	gatherMost = 64 << 10
	// gatherLast is how long what waits when a connection is closed gets.
	gatherLast = time.Second
)

// gatherSoon is how soon after another a write must come to be gathered.
const gatherSoon = time.Millisecond

// A gatherListener accepts connections that gather what is written to them, if
// their clients speak HTTP/2. net/http writes each frame of each stream by
// itself, and the system call is most of what that costs: when a hundred
// watches on a connection get an event, it is a few calls now.
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

// gatherHTTP2 is a tls.Config's GetConfigForClient. It changes no config, but
// has the connection gather when HTTP/2 is what will be chosen.
func gatherHTTP2(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if c, ok := hello.Conn.(*gatherConn); ok && slices.Contains(hello.SupportedProtos, "h2") {
		c.gathers.Store(true)
	}
	return nil, nil
}

// A gatherConn, once it gathers, writes in the background what comes soon after
// other writes: all that comes until the other goroutines have had their turn.
// Errors are then those of an earlier write. It is written to by one goroutine
// at a time, as by a tls.Conn.
type gatherConn struct {
	net.Conn
	gathers  atomic.Bool
	flushing *sync.WaitGroup

	mu       sync.Mutex // guards what follows
	room     *sync.Cond // there is room again, or an error; nil while nobody has waited
	waits    []byte
	last     time.Time // of the writes
	deadline time.Time // for writing
	active   bool      // something is being written
	closed   bool
	err      error
}

// gatherBuffers are shared: one is needed only while there is something to
// write.
var gatherBuffers = sync.Pool{New: func() any { b := make([]byte, 0, gatherMost+20<<10); return &b }}

func (c *gatherConn) Write(p []byte) (int, error) {
	if !c.gathers.Load() {
		return c.Conn.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	soon := now.Sub(c.last) < gatherSoon
	c.last = now
	for len(c.waits) >= gatherMost && c.err == nil {
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

// flush writes what waits until nothing does.
func (c *gatherConn) flush() {
	runtime.Gosched() // behind those who are about to write as well
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

// writeLocked writes, without the lock.
func (c *gatherConn) writeLocked(p []byte, now time.Time) {
	if !c.closed && c.deadline.Sub(now) < httpstream.WriteTimeout { // not each time: it has its price
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

// doneLocked is called when nothing waits to be written any more.
func (c *gatherConn) doneLocked() {
	c.active = false
	if c.closed {
		c.Conn.Close()
	}
}

// Close closes the connection behind what waits.
func (c *gatherConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.active {
		_ = c.Conn.SetReadDeadline(time.Now())
		return c.Conn.SetWriteDeadline(time.Now().Add(gatherLast))
	}
	return c.Conn.Close()
}

// SetWriteDeadline is for a connection that does not gather: one that does has
// deadlines of its own.
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
