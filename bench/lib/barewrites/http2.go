// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package barewrites

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	recordSize = 16 << 10 // the largest plaintext of a TLS record
	// maxBatch is how many bytes of records are written together at most. More needs
	// more of the processor's cache, and saves little of the calls.
	maxBatch = 256 << 10
)

// conn2 is an HTTP/2 connection, with many watches.
type conn2 struct {
	line []byte

	mu      sync.Mutex // guards the fields below
	tls     *tls.Conn
	records *batch
	frames  *http2.Framer // writes to out
	out     bytes.Buffer
	plain   []byte // of the next record
	streams []uint32
}

// A batch holds what is written to a connection until flush.
type batch struct {
	net.Conn
	held []byte
}

func (b *batch) Write(p []byte) (int, error) {
	b.held = append(b.held, p...)
	return len(p), nil
}

func (b *batch) flush() error {
	_, err := b.Conn.Write(b.held)
	b.held = b.held[:0]
	return err
}

// handshaking is a batch that holds nothing until the handshake is done.
type handshaking struct {
	*batch
	done bool
}

func (h *handshaking) Write(p []byte) (int, error) {
	if h.done {
		return h.batch.Write(p)
	}
	return h.Conn.Write(p)
}

func (s *server) open2(nc net.Conn) error {
	records := &batch{Conn: nc}
	under := &handshaking{batch: records}
	c := &conn2{line: []byte(s.line), tls: tls.Server(under, s.config), records: records, plain: make([]byte, 0, recordSize)}
	if err := c.tls.Handshake(); err != nil {
		return err
	}
	under.done = true
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.tls, preface); err != nil {
		return err
	}
	c.frames = http2.NewFramer(&c.out, c.tls)
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := c.write(func() error {
		return c.frames.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1000})
	}); err != nil {
		return err
	}
	s.add(c)
	for {
		f, err := c.frames.ReadFrame()
		if err != nil {
			return err
		}
		if err := c.frame(f); err != nil {
			return err
		}
	}
}

// frame handles a frame of the client. Windows are not counted: those of package streams
// are large enough.
func (c *conn2) frame(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		return c.write(c.frames.WriteSettingsAck)
	case *http2.PingFrame:
		if f.IsAck() {
			return nil
		}
		return c.write(func() error { return c.frames.WritePing(true, f.Data) })
	case *http2.MetaHeadersFrame:
		return c.write(func() error {
			c.streams = append(c.streams, f.StreamID)
			return c.frames.WriteHeaders(http2.HeadersFrameParam{
				StreamID: f.StreamID, EndHeaders: true,
				BlockFragment: []byte{0x88}, // :status 200, by its index
			})
		})
	}
	return nil
}

// write writes the frames that produce makes.
func (c *conn2) write(produce func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := produce()
	_, wrote := c.tls.Write(c.out.Bytes())
	c.out.Reset()
	return errors.Join(err, wrote, c.records.flush())
}

func (c *conn2) Close() error { return c.tls.Close() }

func (c *conn2) event() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.line)
	for _, id := range c.streams {
		// The header of a DATA frame without flags.
		header := [9]byte{byte(n >> 16), byte(n >> 8), byte(n), 0, 0, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
		if err := c.append(header[:]); err != nil {
			return err
		}
		if err := c.append(c.line); err != nil {
			return err
		}
	}
	if err := c.seal(); err != nil {
		return err
	}
	return c.records.flush()
}

// append adds bytes to the plaintext, and seals each record that is full.
func (c *conn2) append(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), recordSize-len(c.plain))
		c.plain, p = append(c.plain, p[:n]...), p[n:]
		if len(c.plain) < recordSize {
			continue
		}
		if err := c.seal(); err != nil {
			return err
		}
		if len(c.records.held) < maxBatch {
			continue
		}
		if err := c.records.flush(); err != nil {
			return err
		}
	}
	return nil
}

// seal makes the plaintext a record.
func (c *conn2) seal() error {
	_, err := c.tls.Write(c.plain)
	c.plain = c.plain[:0]
	return err
}
