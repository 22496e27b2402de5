// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2test

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// defaultWindow is the flow-control window of a new connection, and of streams before
// SETTINGS_INITIAL_WINDOW_SIZE.
const defaultWindow = 65535

// watchdog ends a test that waits for something that does not happen.
const watchdog = 2 * time.Minute

// A Conn is a connection to a server under test. Its methods may be used concurrently.
// Those that write return an error when the server has closed the connection.
type Conn struct {
	t    testing.TB
	conn net.Conn

	writing lock // guards the fields below, and the order of frames
	buffer  bytes.Buffer
	framer  *http2.Framer // to the buffer
	block   bytes.Buffer
	encoder *hpack.Encoder
	written int64
	next    uint32 // the ID of the next stream

	reading sync.WaitGroup
	manual  bool // the test calls Listen
	mute    bool // nothing is answered

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	state   State
	base    int64   // the acknowledged SETTINGS_INITIAL_WINDOW_SIZE
	pending []int64 // not yet acknowledged ones, -1 for SETTINGS without it
	credit  int64   // how much DATA the server may send on the connection
	pings   map[[8]byte]int
	greeted bool // the server's first SETTINGS have been acknowledged
}

// A lock is a mutex that may be held while a goroutine waits for the server: for
// testing/synctest, one that waits for a sync.Mutex is not blocked, and time stands.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// An Option changes how a Conn behaves.
type Option func(*Conn, *[]http2.Setting)

// With sends settings with the preface.
func With(settings ...http2.Setting) Option {
	return func(_ *Conn, all *[]http2.Setting) { *all = append(*all, settings...) }
}

// Deaf reads nothing until Listen.
func Deaf(c *Conn, _ *[]http2.Setting) { c.manual = true }

// New sends the preface and settings, and reads what the server sends until the test ends.
func New(t testing.TB, conn net.Conn, options ...Option) *Conn {
	t.Helper()
	c := newConn(t, conn)
	var settings []http2.Setting
	for _, o := range options {
		o(c, &settings)
	}
	t.Cleanup(c.Close)
	if err := c.greet(settings); err != nil {
		t.Fatalf("the preface: %v", err)
	}
	if !c.manual { // so that a test knows what follows on the wire
		c.Wait("the server's SETTINGS", func(*State) bool { return c.greeted })
	}
	return c
}

// greet sends the preface and SETTINGS before anything else.
func (c *Conn) greet(settings []http2.Setting) error {
	c.writing.Lock() // what the reader answers has to wait
	defer c.writing.Unlock()
	if !c.manual {
		c.Listen()
	}
	c.mu.Lock()
	c.expectLocked(settings)
	c.mu.Unlock()
	if err := c.writeLocked([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	return c.framesLocked(func(f *http2.Framer) { _ = f.WriteSettings(settings...) })
}

// Bare is New without a preface, settings or reading. It answers no SETTINGS or PING.
func Bare(t testing.TB, conn net.Conn) *Conn {
	c := newConn(t, conn)
	c.mute = true
	t.Cleanup(c.Close)
	return c
}

func newConn(t testing.TB, conn net.Conn) *Conn {
	c := &Conn{t: t, conn: conn, writing: make(lock, 1), next: 1, base: defaultWindow, credit: defaultWindow, pings: map[[8]byte]int{}}
	c.changed = sync.NewCond(&c.mu)
	c.framer = http2.NewFramer(&c.buffer, nil)
	c.framer.AllowIllegalWrites = true
	c.encoder = hpack.NewEncoder(&c.block)
	c.state = State{Settings: map[http2.SettingID]uint32{}, Streams: map[uint32]*Stream{}, Window: defaultWindow}
	return c
}

// Listen starts reading.
func (c *Conn) Listen() { c.reading.Go(c.read) }

// Close closes the connection, and fails the test if the server has violated the protocol.
func (c *Conn) Close() {
	c.conn.Close()
	c.reading.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.state.Violations {
		c.t.Errorf("the server violates the protocol: %s", v)
	}
	c.state.Violations = nil
}
