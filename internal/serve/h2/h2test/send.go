// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2test

import (
	"bytes"
	"slices"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

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
