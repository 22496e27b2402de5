// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	largestWindow  = 1<<31 - 1
	standardWindow = 1<<16 - 1
	// refill is the number of bytes after which a window update is sent for a
	// connection.
	refill = 1 << 28
)

// conn2 is an HTTP/2 connection, with many requests at a time.
type conn2 struct {
	nc        net.Conn
	at        func() time.Time // when the bytes of the last Read arrived
	authority string
	in        *bufio.Reader
	frames    *http2.Framer // reads from in
	received  uint32        // bytes since the last window update; only read uses it

	writing sync.Mutex // guards writes to frames, and the fields up to settled
	out     *bufio.Writer
	encoder *hpack.Encoder
	block   bytes.Buffer

	limit   uint32        // of streams, once settled is closed
	settled chan struct{} // closed by the server's settings
	done    chan struct{} // closed when read has returned

	mu      sync.Mutex // guards the fields below
	next    uint32     // id of the next stream
	streams map[uint32]receiver
	err     error // why the connection ended
}

// dial2 connects, and returns when it has received the server's settings. It calls read
// with run.
func dial2(ctx context.Context, t Target, stamped bool, run func(func())) (*conn2, error) {
	nc, at, err := t.dial(ctx, stamped)
	if err != nil {
		return nil, err
	}
	c := &conn2{
		nc: nc, at: at, authority: t.Address, in: bufio.NewReaderSize(nc, 64<<10), out: bufio.NewWriter(nc), next: 1, limit: 100,
		settled: make(chan struct{}), done: make(chan struct{}), streams: map[uint32]receiver{},
	}
	c.encoder = hpack.NewEncoder(&c.block)
	c.frames = http2.NewFramer(c.out, c.in)
	c.frames.SetReuseFrames()
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err = c.out.WriteString(http2.ClientPreface)
	err = errors.Join(err,
		c.frames.WriteSettings(
			http2.Setting{ID: http2.SettingEnablePush, Val: 0},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: largestWindow}),
		c.frames.WriteWindowUpdate(0, largestWindow-standardWindow),
		c.out.Flush())
	if err != nil {
		nc.Close()
		return nil, err
	}
	run(c.read)
	select {
	case <-c.settled:
		return c, nil
	case <-c.done:
		return nil, c.err
	case <-ctx.Done():
		nc.Close()
		return nil, ctx.Err()
	}
}

// send sends a GET and registers the receiver of its response.
func (c *conn2) send(path string, header map[string]string, to receiver) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	id, ended := c.next, c.err
	c.next += 2
	c.streams[id] = to
	c.mu.Unlock()
	if ended != nil {
		return ended
	}
	c.block.Reset()
	field := func(name, value string) {
		c.encoder.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: value})
	}
	field(":method", "GET")
	field(":scheme", "https")
	field(":authority", c.authority)
	field(":path", path)
	for name, value := range header {
		field(name, value)
	}
	err := c.frames.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: c.block.Bytes(), EndStream: true, EndHeaders: true,
	})
	return errors.Join(err, c.out.Flush())
}

// read reads frames until the connection ends. Then it ends every stream.
func (c *conn2) read() {
	err := c.readFrames()
	c.nc.Close()
	c.mu.Lock()
	c.err = err
	left := c.streams
	c.streams = map[uint32]receiver{}
	c.mu.Unlock()
	for _, s := range left {
		s.end(err)
	}
	close(c.done)
}

// readFrames reads until the connection fails.
func (c *conn2) readFrames() error {
	const frameHeader = 9
	for {
		b, err := c.in.Peek(frameHeader)
		if err != nil {
			return err
		}
		if http2.FrameType(b[3]) == http2.FrameData {
			size, flags, id := uint32(b[0])<<16|uint32(b[1])<<8|uint32(b[2]), http2.Flags(b[4]), binary.BigEndian.Uint32(b[5:])
			if flags.Has(http2.FlagDataPadded) {
				return errors.New("padded data")
			}
			_, _ = c.in.Discard(frameHeader) // peeked
			if err := c.data(id, size, flags.Has(http2.FlagDataEndStream)); err != nil {
				return err
			}
			continue
		}
		f, err := c.frames.ReadFrame()
		if err != nil {
			return err
		}
		if err := c.frame(f); err != nil {
			return err
		}
	}
}

// data reads the data of a frame, of which a Framer would make a copy.
func (c *conn2) data(id, size uint32, ended bool) error {
	s := c.stream(id, false)
	for left := int(size); left > 0; {
		if _, err := c.in.Peek(1); err != nil {
			return err
		}
		p, _ := c.in.Peek(min(left, c.in.Buffered()))
		if s != nil {
			s.data(p)
		}
		_, _ = c.in.Discard(len(p)) // peeked
		left -= len(p)
	}
	if s != nil && ended {
		c.stream(id, true)
		s.end(nil)
	}
	if c.received += size; c.received < refill {
		return nil
	}
	n := c.received
	c.received = 0
	return c.write(func() error { return c.frames.WriteWindowUpdate(0, n) })
}

func (c *conn2) frame(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		s := c.stream(f.StreamID, f.StreamEnded())
		if s == nil {
			return nil
		}
		if status := f.PseudoValue("status"); status != "" { // not the trailer
			code, err := strconv.Atoi(status)
			if err != nil {
				return err
			}
			s.header(code)
		}
		if f.StreamEnded() {
			s.end(nil)
		}
	case *http2.RSTStreamFrame:
		if s := c.stream(f.StreamID, true); s != nil {
			s.end(fmt.Errorf("stream reset: %v", f.ErrCode))
		}
	case *http2.GoAwayFrame:
		if f.ErrCode != http2.ErrCodeNo {
			return fmt.Errorf("connection ended: %v", f.ErrCode)
		}
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.write(func() error { return c.frames.WritePing(true, f.Data) })
		}
	}
	return nil
}

// stream returns the receiver of a stream, nil if there is none. With the last frame it
// removes the receiver.
func (c *conn2) stream(id uint32, last bool) receiver {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if last {
		delete(c.streams, id)
	}
	return s
}

func (c *conn2) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	select {
	case <-c.settled:
	default:
		if v, ok := f.Value(http2.SettingMaxConcurrentStreams); ok {
			c.limit = v
		}
		close(c.settled)
	}
	return c.write(c.frames.WriteSettingsAck)
}

func (c *conn2) write(frame func() error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return errors.Join(frame(), c.out.Flush())
}

// withDefaults returns the headers of a request.
func withDefaults(always, now map[string]string) map[string]string {
	all := map[string]string{"Accept": "application/json"}
	maps.Copy(all, always)
	maps.Copy(all, now)
	return all
}

// open2 opens HTTP/2 connections with as many watches each as Options and the server
// allow.
func (s *Set) open2(ctx context.Context, t Target, o Options) error {
	for at := 0; at < len(o.Paths); {
		c, err := dial2(ctx, t, o.Observe != nil, s.reading.Go)
		if err != nil {
			return err
		}
		s.add(c.nc)
		n := len(o.Paths) - at
		if o.PerConnection > 0 {
			n = min(n, o.PerConnection)
		}
		n = min(n, int(c.limit))
		status := make(chan int, n)
		for i := range n {
			s.watches[at+i].opened = func(code int) { status <- code }
			s.watches[at+i].at = c.at
			if err := c.send(o.Paths[at+i], withDefaults(t.Header, o.header(at+i)), &s.watches[at+i]); err != nil {
				return err
			}
		}
		for range n {
			select {
			case code := <-status:
				if code != 200 {
					return fmt.Errorf("watch: status %d", code)
				}
			case <-c.done:
				return fmt.Errorf("watch: %w", c.err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		at += n
	}
	return nil
}
