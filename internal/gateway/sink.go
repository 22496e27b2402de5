// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

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

// A streamOut is the way to the client of a watch. Its writes have no buffer
// behind them.
type streamOut interface {
	writeFrame(*wire.Frame) error
	writeBlock(*block) error
	// abort has what is being written fail, and all that follows.
	abort()
	// cut is abort for a stream that is ending: it may have a moment more.
	cut()
}

// An httpSink writes frames to the body of a response: one that is shared as
// it is, several in blocks.
type httpSink struct {
	out   streamOut
	pulse *pulse
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
	s.pulse.writing()
	defer s.pulse.written()
	err := s.out.writeBlock(s.block)
	s.block.n = 0
	return err
}

func (s *httpSink) flush() (err error) {
	switch {
	case s.one != nil:
		s.pulse.writing()
		err = s.out.writeFrame(s.one)
		s.pulse.written()
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

// A responseOut is the body of a response of net/http's: HTTP/2, and the
// HTTP/1 that is not taken over.
type responseOut struct {
	w   io.Writer
	ctl *http.ResponseController
}

// newResponseOut sends the header, ahead of any frame.
func newResponseOut(w http.ResponseWriter) (*responseOut, error) {
	w.WriteHeader(http.StatusOK)
	for { // what is around net/http's own has done its work
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = outer.Unwrap()
	}
	ctl := http.NewResponseController(w)
	return &responseOut{w: w, ctl: ctl}, ctl.Flush()
}

func (o *responseOut) writeFrame(f *wire.Frame) error { return o.write(f.Bytes()) }
func (o *responseOut) writeBlock(b *block) error      { return o.write(b.bytes()) }

func (o *responseOut) write(p []byte) error {
	if _, err := o.w.Write(p); err != nil {
		return err
	}
	return o.ctl.Flush()
}

// cut has nothing to do: net/http's server closes its connections at the end.
func (o *responseOut) cut() {}

// abort fails only where nobody knows deadlines; net/http's writers do.
func (o *responseOut) abort() { _ = o.ctl.SetWriteDeadline(time.Now().Add(-time.Second)) }
