// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A block is a piece of a stream that is written at once, with room for what
// makes it a chunk of an HTTP/1.1 body.
type block struct {
	n    int // bytes of the piece
	data [64 << 10]byte
}

const (
	chunkHead = len("0000ffff\r\n") // leading zeros are allowed (RFC 9112, 7.1)
	chunkTail = len("\r\n")
	blockSize = len(block{}.data) - chunkHead - chunkTail
)

// blocks are shared by all streams: one is needed only while there is
// something to write.
var blocks = sync.Pool{New: func() any { return new(block) }}

// fill appends what there is room for, and returns the rest.
func fill[T string | []byte](b *block, text T) (rest T) {
	n := copy(b.data[chunkHead+b.n:chunkHead+blockSize], text)
	b.n += n
	return text[n:]
}

// bytes returns the piece.
func (b *block) bytes() []byte { return b.data[chunkHead : chunkHead+b.n] }

// chunk returns the piece as a chunk.
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
	// abort makes the write under way fail, and all that follow.
	abort()
	// cut is abort for a stream that is ending: it has a second more.
	cut()
}

// A frameSink takes the frames of one watch to its client.
type frameSink interface {
	// frame takes one frame, in parts. It may keep it until flush.
	frame(parts []string) error
	flush() error
	// release gives back what the sink holds.
	release()
}

// A frameSharer is a sink that takes frames that streams share.
type frameSharer interface {
	share(*wire.Frame) error
}

// An httpSink writes frames to the body of a response: a single shared frame as it
// is, several in blocks.
type httpSink struct {
	out   output
	timer *watchTimer
	one   *wire.Frame // the only one so far; nil while there is none, or a block
	block *block      // nil while there is nothing to write
}

// share takes a frame that all streams share.
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

// open goes on in a block.
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

// A responseOutput is the body of a response of net/http's: HTTP/2, and the
// HTTP/1 that is not taken over.
type responseOutput struct {
	w   io.Writer
	ctl *http.ResponseController
}

// newResponseOut sends the header, before any frame.
func newResponseOutput(w http.ResponseWriter) (*responseOutput, error) {
	w.WriteHeader(http.StatusOK)
	for { // the writers around net/http's own have done their work
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

// abort fails only on a ResponseWriter without deadlines; net/http's have them.
func (o *responseOutput) abort() { _ = o.ctl.SetWriteDeadline(time.Now().Add(-time.Second)) }
