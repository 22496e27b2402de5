// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

// A block is a buffer for one write, with room for the framing of an HTTP/1.1 chunk.
type block struct {
	n    int // bytes of content
	data [64 << 10]byte
}

const (
	chunkHead = len("0000ffff\r\n") // leading zeros are allowed (RFC 9112, 7.1)
	chunkTail = len("\r\n")
	blockSize = len(block{}.data) - chunkHead - chunkTail
)

// blocks are shared by all streams, since a stream needs one only while it writes.
var blocks = sync.Pool{New: func() any { return new(block) }}

// fill appends as much of text as fits, and returns the rest.
func fill[T string | []byte](b *block, text T) (rest T) {
	n := copy(b.data[chunkHead+b.n:chunkHead+blockSize], text)
	b.n += n
	return text[n:]
}

// bytes returns the content.
func (b *block) bytes() []byte { return b.data[chunkHead : chunkHead+b.n] }

// chunk returns the content as a chunk.
func (b *block) chunk() []byte {
	n := uint32(b.n)
	hex.Encode(b.data[:], []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	copy(b.data[chunkHead-2:], "\r\n")
	end := chunkHead + b.n
	copy(b.data[end:], "\r\n")
	return b.data[:end+chunkTail]
}

// An output is the connection to the client of a watch. Its writes are not
// buffered.
type output interface {
	writeFrame(*wire.Frame) error
	writeBlock(*block) error
	// abort makes the current write and all later ones fail.
	abort()
	// cut is abort after lastWrites, for a stream that ends.
	cut()
}

// A frameSink sends the frames of one watch to its client.
type frameSink interface {
	// frame writes one frame, given in parts. It may buffer the frame until flush.
	frame(parts []string) error
	flush() error
	// release returns the buffer to the pool.
	release()
}

// A frameSharer is a sink that can write frames which several streams share.
type frameSharer interface {
	share(*wire.Frame) error
}

// An httpSink writes frames to the body of a response. It writes a single shared frame
// without a copy, and copies several frames into blocks.
type httpSink struct {
	out   output
	timer *watchTimer
	one   *wire.Frame // the buffered frame, if it is the only one and shared
	block *block      // the buffered frames otherwise; nil if there are none
}

// share implements frameSharer.
func (s *httpSink) share(f *wire.Frame) error {
	if s.one == nil && s.block == nil {
		s.one = f
		return nil
	}
	if err := s.open(); err != nil {
		return err
	}
	return add(s, f.Bytes())
}

func (s *httpSink) frame(parts []string) error {
	if err := s.open(); err != nil {
		return err
	}
	for _, p := range parts {
		if err := add(s, p); err != nil {
			return err
		}
	}
	return nil
}

// open makes block the buffer, and moves a single shared frame into it.
func (s *httpSink) open() error {
	if s.block == nil {
		s.block = blocks.Get().(*block)
	}
	if one := s.one; one != nil {
		s.one = nil
		return add(s, one.Bytes())
	}
	return nil
}

func add[T string | []byte](s *httpSink, text T) error {
	for text = fill(s.block, text); len(text) > 0; text = fill(s.block, text) {
		if err := s.writeBlock(); err != nil {
			return err
		}
	}
	return nil
}

func (s *httpSink) writeBlock() error {
	s.timer.writing()
	defer s.timer.written()
	err := s.out.writeBlock(s.block)
	s.block.n = 0
	return err
}

func (s *httpSink) flush() (err error) {
	switch {
	case s.one != nil:
		s.timer.writing()
		err = s.out.writeFrame(s.one)
		s.timer.written()
		s.one = nil
	case s.block != nil:
		err = s.writeBlock()
		s.release()
	}
	return err
}

func (s *httpSink) release() {
	s.one = nil
	if s.block != nil {
		s.block.n = 0
		blocks.Put(s.block)
		s.block = nil
	}
}

// A responseOutput is a response that net/http writes: one over HTTP/2, or over an
// HTTP/1 connection that is not hijacked.
type responseOutput struct {
	w   io.Writer
	ctl *http.ResponseController
}

// newResponseOutput sends the header, so that the client has it before the first
// frame.
func newResponseOutput(w http.ResponseWriter) (*responseOutput, error) {
	w.WriteHeader(http.StatusOK)
	for { // the wrappers around net/http's writer are needed for the header only
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = outer.Unwrap()
	}
	ctl := http.NewResponseController(w)
	return &responseOutput{w: w, ctl: ctl}, ctl.Flush()
}

func (o *responseOutput) writeFrame(f *wire.Frame) error { return o.write(f.Bytes()) }
func (o *responseOutput) writeBlock(b *block) error      { return o.write(b.bytes()) }

func (o *responseOutput) write(p []byte) error {
	if _, err := o.w.Write(p); err != nil {
		return err
	}
	return o.ctl.Flush()
}

// cut has nothing to do: net/http's server closes its connections at the end.
func (o *responseOutput) cut() {}

// abort implements output. Setting the deadline fails only for a ResponseWriter that
// is not net/http's.
func (o *responseOutput) abort() { _ = o.ctl.SetWriteDeadline(time.Now().Add(-time.Second)) }
