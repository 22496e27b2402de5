// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	// maxFrame limits one watch event. etcd's own default limit of a request
	// is 1.5 MiB.
	maxFrame    = 64 << 20
	frameBuffer = 64 << 10 // read buffer of a stream
)

// frames are the events of one stream. An object is valid until the next call,
// unless its type says otherwise.
type frames[O any] interface {
	// next reads a frame. It returns io.EOF at an orderly end.
	next() (frame[O], error)
	// waiting reports whether a further frame has been received completely.
	waiting() bool
}

// A frame is one event of a watch.
type frame[O any] struct {
	typ     kube.EventType
	rv      uint64
	end     bool   // the bookmark that ends the initial events
	columns string // of the Tables in which the stream's objects come
	object  O
	status  []byte // of an ERROR, as encoded
}

// A countingReader reports the number of bytes read.
type countingReader struct {
	io.Reader
	count func(int)
}

func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.count(n)
	}
	return n, err
}

// A lineReader reads lines of up to maxFrame bytes.
type lineReader struct {
	body *bufio.Reader
	line []byte
}

// next reads a line and returns it without its newline. It is valid until the
// next call.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		part, err := l.body.ReadSlice('\n')
		if err == nil && len(l.line) == 0 {
			return part[:len(part)-1], nil
		}
		l.line = append(l.line, part...)
		switch {
		case err == nil:
			return l.line[:len(l.line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull) && len(l.line) <= maxFrame:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%w: frame of more than %d bytes", scan.ErrSyntax, maxFrame)
		case errors.Is(err, io.EOF) && len(l.line) > 0:
			return nil, fmt.Errorf("%w: stream ends within a frame", scan.ErrSyntax)
		}
		return nil, err
	}
}

func (l *lineReader) waiting() bool {
	buffered, _ := l.body.Peek(l.body.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}

// jsonFrames are JSON, one frame per line.
type jsonFrames struct {
	lineReader
	event scan.ItemEvent
}

func (s *jsonFrames) next() (frame[*scan.Item], error) {
	line, err := s.lineReader.next()
	if err == nil {
		err = s.event.Scan(line)
	}
	return itemFrame(&s.event, err)
}

func itemFrame(e *scan.ItemEvent, err error) (frame[*scan.Item], error) {
	if err != nil {
		return frame[*scan.Item]{}, err
	}
	return frame[*scan.Item]{typ: e.Type, rv: e.Item.RV, end: e.Item.InitialEventsEnd(), object: &e.Item, status: e.Status}, nil
}

// protobufFrames are protobuf, each after its length in four bytes, big endian.
type protobufFrames struct {
	lineReader // for its buffers
	event      scan.ItemEvent
}

func (s *protobufFrames) next() (frame[*scan.Item], error) {
	b, err := s.read()
	if err == nil {
		err = s.event.ScanProtobuf(b)
	}
	return itemFrame(&s.event, err)
}

func (s *protobufFrames) read() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(s.body, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxFrame {
		return nil, fmt.Errorf("%w: frame of more than %d bytes", scan.ErrProtobuf, maxFrame)
	}
	if int(n) > cap(s.line) {
		s.line = make([]byte, n+n/4)
	}
	_, err := io.ReadFull(s.body, s.line[:n])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return s.line[:n], err
}

func (s *protobufFrames) waiting() bool {
	buffered, _ := s.body.Peek(s.body.Buffered())
	return len(buffered) >= 4 && uint64(len(buffered)-4) >= uint64(binary.BigEndian.Uint32(buffered))
}

// objectFrames are JSON, one frame per line. Its objects are the sink's to keep.
type objectFrames struct {
	lineReader
	encoding *objectEncoding
	columns  string // from the first frame
}

func (s *objectFrames) next() (frame[*scan.Object], error) {
	line, err := s.lineReader.next()
	if err != nil {
		return frame[*scan.Object]{}, err
	}
	var f scan.Frame
	if err := f.Scan(line); err != nil {
		return frame[*scan.Object]{}, err
	}
	if f.Type == kube.Error {
		return frame[*scan.Object]{typ: f.Type, status: []byte(f.Status)}, nil
	}
	columns := f.Object.Columns
	if columns != "" {
		// Share one copy among all streams whose columns are equal.
		if s.columns = s.encoding.columns; columns != s.columns {
			s.columns = strings.Clone(columns)
			s.encoding.columns = s.columns
		}
	}
	// The text is the reader's, and has more than the object: the object gets a copy of its
	// own part. As it is as long as that of a list's item, the memory of one can be reused
	// for the other.
	f.Detach(s.columns)
	return frame[*scan.Object]{typ: f.Type, rv: f.Object.RV, end: f.InitialEventsEnd(), columns: s.columns, object: f.Object}, nil
}
