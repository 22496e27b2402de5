// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
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

// A State is what the server has sent.
type State struct {
	Settings     map[http2.SettingID]uint32
	Streams      map[uint32]*Stream
	SettingsAcks int
	PingAcks     int
	Headers      int // HEADERS frames
	Resets       int // RST_STREAM frames
	// GoAway is the last GOAWAY frame, and GoAwayCode its code.
	GoAway     bool
	GoAwayCode http2.ErrCode
	LastStream uint32
	// Window is how much DATA the server accepts on the connection.
	Window int64
	// Closed is set when the server has closed the connection.
	Closed bool
	// Violations are what the server must not do.
	Violations []string
}

// A Stream is what the server has sent on a stream.
type Stream struct {
	ID       uint32
	Status   string
	Header   []hpack.HeaderField // without :status
	Trailer  []hpack.HeaderField
	Interim  []string // 1xx statuses
	Body     []byte
	Ended    bool // END_STREAM
	Reset    bool
	Code     http2.ErrCode // of RST_STREAM
	granted  int64         // by WINDOW_UPDATE
	received int64         // bytes of DATA, with padding
	// Window is how much DATA the server accepts, beyond SETTINGS_INITIAL_WINDOW_SIZE.
	Window int64
}

// String describes the stream.
func (s *Stream) String() string {
	text := fmt.Sprintf("stream %d: status %q, %d bytes of body, ended: %v", s.ID, s.Status, s.received, s.Ended)
	if s.Reset {
		text += fmt.Sprintf(", reset: %v", s.Code)
	}
	return text
}

// Done reports whether the server has ended the stream.
func (s *Stream) Done() bool { return s.Ended || s.Reset }

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

// Written returns how many bytes the server has taken.
func (c *Conn) Written() int64 {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.written
}

// Write writes bytes.
func (c *Conn) Write(p []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.writeLocked(p)
}

func (c *Conn) writeLocked(p []byte) error {
	n, err := c.conn.Write(p)
	c.written += int64(n)
	return err
}

// Frames writes frames at once.
func (c *Conn) Frames(write func(*http2.Framer)) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.framesLocked(write)
}

func (c *Conn) framesLocked(write func(*http2.Framer)) error {
	c.buffer.Reset()
	write(c.framer)
	return c.writeLocked(c.buffer.Bytes())
}

// Encode returns a header block of pairs of names and values. Blocks have to be sent in
// the order of the calls, because the table of HPACK follows it.
func (c *Conn) Encode(pairs ...string) []byte {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.encodeLocked(pairs)
}

func (c *Conn) encodeLocked(pairs []string) []byte {
	c.block.Reset()
	for pair := range slices.Chunk(pairs, 2) {
		if err := c.encoder.WriteField(hpack.HeaderField{Name: pair[0], Value: pair[1]}); err != nil {
			panic(err) // a bytes.Buffer does not fail
		}
	}
	return bytes.Clone(c.block.Bytes())
}

// Request returns the pairs of a valid request.
func Request(method, path string, more ...string) []string {
	return append([]string{":method", method, ":scheme", "http", ":authority", "watchkeeper.test", ":path", path}, more...)
}

// Open opens the next stream with a request, and returns its ID.
func (c *Conn) Open(end bool, pairs ...string) (id uint32, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	id = c.next
	c.next += 2
	c.mu.Lock()
	c.state.Streams[id] = &Stream{ID: id}
	c.mu.Unlock()
	block := c.encodeLocked(pairs)
	return id, c.framesLocked(func(f *http2.Framer) { writeBlock(f, id, end, block) })
}

// writeBlock writes a HEADERS frame, and CONTINUATION frames for what exceeds it.
func writeBlock(f *http2.Framer, id uint32, end bool, block []byte) {
	const most = 16384
	first := block[:min(len(block), most)]
	rest := block[len(first):]
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: len(rest) == 0, BlockFragment: first})
	for len(rest) > 0 {
		part := rest[:min(len(rest), most)]
		rest = rest[len(part):]
		_ = f.WriteContinuation(id, len(rest) == 0, part)
	}
}

// Get opens the next stream with a GET, which ends it.
func (c *Conn) Get(path string, more ...string) (uint32, error) {
	return c.Open(true, Request("GET", path, more...)...)
}

// HeadersOn sends a HEADERS frame on a stream, as trailers or where it is invalid.
func (c *Conn) HeadersOn(id uint32, end bool, pairs ...string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	block := c.encodeLocked(pairs)
	return c.framesLocked(func(f *http2.Framer) { writeBlock(f, id, end, block) })
}

// Data sends a DATA frame, without regard to the server's windows.
func (c *Conn) Data(id uint32, end bool, data []byte) error {
	return c.Frames(func(f *http2.Framer) { _ = f.WriteData(id, end, data) })
}

// Reset sends RST_STREAM.
func (c *Conn) Reset(id uint32, code http2.ErrCode) error {
	return c.Frames(func(f *http2.Framer) { _ = f.WriteRSTStream(id, code) })
}

// Settings sends SETTINGS.
func (c *Conn) Settings(settings ...http2.Setting) error {
	c.mu.Lock()
	c.expectLocked(settings)
	c.mu.Unlock()
	return c.Frames(func(f *http2.Framer) { _ = f.WriteSettings(settings...) })
}

func (c *Conn) expectLocked(settings []http2.Setting) {
	window := int64(-1)
	for _, s := range settings {
		if s.ID == http2.SettingInitialWindowSize {
			window = int64(s.Val)
		}
	}
	c.pending = append(c.pending, window)
}

// Ping sends PING.
func (c *Conn) Ping(data [8]byte) error {
	c.mu.Lock()
	c.pings[data]++
	c.mu.Unlock()
	return c.Frames(func(f *http2.Framer) { _ = f.WritePing(false, data) })
}

// ExpectPing announces a PING that a test writes with Frames.
func (c *Conn) ExpectPing(data [8]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pings[data]++
}

// ExpectSettings announces SETTINGS, with a SETTINGS_INITIAL_WINDOW_SIZE unless it is -1.
func (c *Conn) ExpectSettings(window int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, window)
}

// Grant sends WINDOW_UPDATE for a stream, or for the connection (0).
func (c *Conn) Grant(id, n uint32) error {
	c.mu.Lock()
	if id == 0 {
		c.credit += int64(n)
	} else if s := c.state.Streams[id]; s != nil {
		s.granted += int64(n)
	}
	c.mu.Unlock()
	return c.Frames(func(f *http2.Framer) { _ = f.WriteWindowUpdate(id, n) })
}

// Track makes the client expect answers on a stream that the test opens with frames of its
// own.
func (c *Conn) Track(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Streams[id] == nil {
		c.state.Streams[id] = &Stream{ID: id}
	}
}

// Forget drops what is known of a stream that has ended.
func (c *Conn) Forget(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.state.Streams, id)
}

// Patience makes writing fail when the server takes nothing for a time from now on.
func (c *Conn) Patience(d time.Duration) { _ = c.conn.SetWriteDeadline(time.Now().Add(d)) }

// Windows returns how much the server may send on a stream, and on the connection. They
// are exact while nothing is on its way.
func (c *Conn) Windows(id uint32) (stream, connection int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.state.Streams[id]; s != nil {
		stream = c.windowLocked(s)
	}
	return stream, c.credit
}

// Look calls a function with the state.
func (c *Conn) Look(see func(*State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	see(&c.state)
}

// Wait waits until a condition holds for the state. When the server closes the connection
// before, the test fails, unless the condition is about that.
func (c *Conn) Wait(what string, condition func(*State) bool) {
	c.t.Helper()
	if err := c.Await(condition); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}

// Await is Wait that returns an error.
func (c *Conn) Await(condition func(*State) bool) error {
	expired := false
	timer := time.AfterFunc(watchdog, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		expired = true
		c.changed.Broadcast()
	})
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case condition(&c.state):
			return nil
		case c.state.Closed:
			return errors.New("the server has closed the connection: " + c.state.end())
		case expired:
			return errors.New("it does not happen: " + c.state.end())
		}
		c.changed.Wait()
	}
}

// end describes how the connection ended, or that it has not.
func (s *State) end() string {
	text := fmt.Sprintf("%d HEADERS, %d RST_STREAM, %d acknowledged PINGs and %d SETTINGS", s.Headers, s.Resets, s.PingAcks, s.SettingsAcks)
	if s.GoAway {
		text += fmt.Sprintf(", GOAWAY %v", s.GoAwayCode)
	}
	if !s.Closed {
		text += ", open"
	}
	return text
}

// Exchange sends a GET and waits for its answer, to see that the connection works.
func (c *Conn) Exchange(path string, more ...string) *Stream {
	c.t.Helper()
	id, err := c.Get(path, more...)
	if err != nil {
		c.t.Fatalf("GET %s: %v", path, err)
	}
	return c.Answer(id)
}

// Refused reports whether the server has ended the connection, or is about to because of
// an error. It may read for a while what the client sends, so that writing is no sign.
func (c *Conn) Refused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Closed || c.state.GoAway && c.state.GoAwayCode != http2.ErrCodeNo
}

// Answer waits for the end of a stream and returns a copy of it.
func (c *Conn) Answer(id uint32) *Stream {
	c.t.Helper()
	var answer Stream
	c.Wait(fmt.Sprintf("an answer on stream %d", id), func(s *State) bool {
		answer = *s.Streams[id]
		return answer.Done()
	})
	return &answer
}

// Sync waits until the server has processed all frames sent so far.
func (c *Conn) Sync() error {
	c.writing.Lock()
	id := uint64(c.written)
	c.writing.Unlock()
	data := [8]byte{0xff, byte(id >> 48), byte(id >> 40), byte(id >> 32), byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
	if err := c.Ping(data); err != nil {
		return err
	}
	return c.Await(func(*State) bool { return c.pings[data] == 0 })
}
