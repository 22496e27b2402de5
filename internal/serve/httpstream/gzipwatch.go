// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/flate"

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

// gzipHeader has no flags, no time, no name, and an unknown system (RFC 1952).
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// maxStored is the size of the largest block that is not compressed (RFC 1951, 3.2.4).
const maxStored = 1<<16 - 1

// Compress makes the watch one in gzip if its initial events are as large as a list that is
// compressed, and sets the headers. It must be called before the watch is served, and not for a
// WebSocket.
func (s *Watch) Compress(header http.Header) {
	bytes := 0
	for _, o := range s.Initial {
		if bytes += len(o.JSON); bytes > gzipThreshold {
			s.zip = &gzipSink{turn: s.Turn}
			header.Set("Content-Encoding", "gzip")
			header.Add("Vary", "Accept-Encoding")
			return
		}
	}
}

// sendTo makes a sink the one of the watch.
func (s *Watch) sendTo(sink frameSink, sharer frameSharer) {
	if s.zip != nil {
		s.zip.to = sink
		sink, sharer = s.zip, s.zip
	}
	s.sink, s.sharer = sink, sharer
}

// A gzipSink sends the frames of a watch as one gzip member: the initial events compressed,
// and what follows as stored blocks. So an idle watch needs no compressor (T10), and a client
// can decompress each event once it has it.
type gzipSink struct {
	to   frameSink
	sum  uint32 // of all frames
	size uint32
	// compressor is nil before the first frame and after the initial events.
	compressor *compressor
	stored     bool // the initial events are over
	ended      bool
	turn       *fairness.Turn
}

// A compressor writes to a buffer, which is sent when it has about a block.
type compressor struct {
	flate *flate.Writer
	buf   bytes.Buffer
}

var compressors = sync.Pool{New: func() any {
	c := new(compressor)
	c.flate, _ = flate.NewWriter(&c.buf, gzipLevel) // the level is valid
	return c
}}

// share implements frameSharer.
func (s *gzipSink) share(f *wire.Frame) error { return s.frame([]string{f.Text()}) }

func (s *gzipSink) frame(parts []string) error {
	n := 0
	for _, p := range parts {
		s.sum = crc32.Update(s.sum, crc32.IEEETable, view(p))
		n += len(p)
	}
	s.size += uint32(n)
	if s.stored {
		return s.store(parts, n)
	}
	if s.compressor == nil {
		s.compressor = compressors.Get().(*compressor)
		s.compressor.buf.WriteString(gzipHeader)
	}
	working := s.turn.Working(s.compressor.flate)
	for _, p := range parts {
		_, _ = working.Write(view(p)) // to memory
	}
	if s.compressor.buf.Len() < blockSize {
		return nil
	}
	return s.send()
}

// send sends what the compressor has written.
func (s *gzipSink) send() error {
	s.turn.End()
	defer s.compressor.buf.Reset()
	return s.to.frame([]string{s.compressor.buf.String()})
}

// store sends a frame of n bytes in stored blocks, and an empty one, at which compress/flate hands
// on what it has read.
func (s *gzipSink) store(parts []string, n int) error {
	room := 0 // in the current block
	for _, p := range parts {
		for len(p) > 0 {
			if room == 0 {
				room = min(n, maxStored)
				n -= room
				if err := s.to.frame([]string{storedHead(room, false)}); err != nil {
					return err
				}
			}
			k := min(room, len(p))
			if err := s.to.frame([]string{p[:k]}); err != nil {
				return err
			}
			p, room = p[k:], room-k
		}
	}
	return s.to.frame([]string{storedHead(0, false)})
}

// storedHead returns the head of a stored block that begins at a byte boundary.
func storedHead(n int, last bool) string {
	head := make([]byte, 1, 5)
	if last {
		head[0] = 1
	}
	head = binary.LittleEndian.AppendUint16(head, uint16(n))
	return string(binary.LittleEndian.AppendUint16(head, ^uint16(n)))
}

// endInitial sends the rest of the initial events. What follows is stored.
func (s *gzipSink) endInitial() error {
	var err error
	if s.compressor != nil {
		_ = s.compressor.flate.Flush() // to memory
		err = s.send()
		s.free()
	} else {
		err = s.to.frame([]string{gzipHeader})
	}
	s.stored, s.turn = true, nil
	return err
}

// end returns the end of the stream; "" if it was returned before.
func (s *gzipSink) end() string {
	if s == nil || s.ended || !s.stored {
		return ""
	}
	s.ended = true
	tail := binary.LittleEndian.AppendUint32([]byte(storedHead(0, true)), s.sum)
	return string(binary.LittleEndian.AppendUint32(tail, s.size))
}

// view returns the bytes of a text, which must not be changed.
func view(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// endGzip sends the end of a watch in gzip. An error means that the client is gone.
func (s *Watch) endGzip() {
	if end := s.zip.end(); end != "" {
		_ = s.zip.to.frame([]string{end})
		_ = s.zip.to.flush()
		s.zip.to.release()
	}
}

func (s *gzipSink) flush() error { return s.to.flush() }

// release returns the buffers to their pools.
func (s *gzipSink) release() {
	s.free()
	s.to.release()
}

func (s *gzipSink) free() {
	s.turn.End()
	if c := s.compressor; c != nil {
		s.compressor = nil
		c.buf.Reset()
		c.flate.Reset(&c.buf)
		compressors.Put(c)
	}
}
