// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

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

// frames are those of one stream. An object stands until the next call, unless
// its type says otherwise.
type frames[O any] interface {
	// next reads a frame; a clean end is io.EOF.
	next() (frame[O], error)
	// waiting reports whether a further frame is there to be read.
	waiting() bool
}

// A frame is one event of a watch.
type frame[O any] struct {
	typ     kube.EventType
	rv      uint64
	end     bool   // the bookmark that ends the initial events
	columns string // that objects of the stream are printed under
	object  O
	status  []byte // of an ERROR, in its encoding
}

// counted tells of the bytes that are read.
type counted struct {
	io.Reader
	count func(int)
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.count(n)
	}
	return n, err
}

const (
	// maxFrame bounds one watch event; etcd's own limit of a request is
	// 1.5 MiB by default.
	maxFrame    = 64 << 20
	frameBuffer = 64 << 10 // what is read of a stream at a time
)

// lines reads the lines of a stream.
type lines struct {
	body *bufio.Reader
	line []byte
}

// next reads a line, without its end. It stands until the next call.
func (l *lines) next() ([]byte, error) {
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
			return nil, fmt.Errorf("%w: a frame of more than %d bytes", scan.ErrSyntax, maxFrame)
		case errors.Is(err, io.EOF) && len(l.line) > 0:
			return nil, fmt.Errorf("%w: the stream ends within a frame", scan.ErrSyntax)
		}
		return nil, err
	}
}

func (l *lines) waiting() bool {
	buffered, _ := l.body.Peek(l.body.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}

type objectFrames struct {
	lines
	form    *objectForm
	initial bool   // in the list that the stream begins with
	columns string // which the first frame told
}

func (s *objectFrames) next() (frame[*scan.Object], error) {
	line, err := s.lines.next()
	if err != nil {
		return frame[*scan.Object]{}, err
	}
	f, err := scan.ParseFrame(string(line))
	if err != nil {
		return frame[*scan.Object]{}, err
	}
	if f.Type == kube.Error {
		return frame[*scan.Object]{typ: f.Type, status: []byte(f.Status)}, nil
	}
	columns := f.Object.Columns
	if columns != "" {
		if s.columns = s.form.columns; columns != s.columns {
			s.columns = strings.Clone(columns)
			s.form.columns = s.columns
		}
	}
	f.Object.Columns = s.columns
	s.initial = s.initial && !f.InitialEventsEnd()
	if columns != "" || s.initial {
		// There are columns in the text, which are not to be kept; and a list
		// is kept for longer than an event.
		if f, err = f.Detached(s.columns); err != nil {
			return frame[*scan.Object]{}, err
		}
	}
	return frame[*scan.Object]{typ: f.Type, rv: f.Object.RV, end: f.InitialEventsEnd(), columns: s.columns, object: f.Object}, nil
}

// textFrames are JSON, a line each.
type textFrames struct {
	lines
	event scan.ItemEvent
}

func (s *textFrames) next() (frame[*scan.Item], error) {
	line, err := s.lines.next()
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

// binaryFrames are protobuf, with their length before them.
type binaryFrames struct {
	lines // of which the buffers are used
	event scan.ItemEvent
}

func (s *binaryFrames) next() (frame[*scan.Item], error) {
	b, err := s.read()
	if err == nil {
		err = s.event.ScanProtobuf(b)
	}
	return itemFrame(&s.event, err)
}

func (s *binaryFrames) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.body, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, fmt.Errorf("%w: a frame of more than %d bytes", scan.ErrProtobuf, maxFrame)
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

func (s *binaryFrames) waiting() bool {
	buffered, _ := s.body.Peek(s.body.Buffered())
	return len(buffered) >= 4 && uint64(len(buffered)-4) >= uint64(binary.BigEndian.Uint32(buffered))
}
