// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const acceptProtobuf = "application/vnd.kubernetes.protobuf"

// itemForm is JSON or protobuf for a sink that takes of an object what it wants
// while it stands in the buffer. Lists are read item by item.
type itemForm struct{ protobuf bool }

func (f itemForm) accept(url.Values) string {
	if f.protobuf {
		return acceptProtobuf
	}
	return acceptJSON
}

func (itemForm) plainer() bool { return false }

func (f itemForm) list(body io.Reader, like *scan.List, item func(*scan.Item)) (*scan.List, error) {
	var it scan.Item
	var list interface {
		Next(*scan.Item) (bool, error)
		Head() *scan.List
	}
	if f.protobuf {
		list = scan.NewProtobufReader(body, like)
	} else {
		list = scan.NewItemReader(body, like)
	}
	for {
		ok, err := list.Next(&it)
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		if !ok {
			return list.Head(), nil
		}
		item(&it)
	}
}

func (f itemForm) watch(body io.Reader, _ bool) frames[*scan.Item] {
	l := lines{body: bufio.NewReaderSize(body, frameBuffer)}
	if f.protobuf {
		return &binaryFrames{lines: l}
	}
	return &textFrames{lines: l}
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
