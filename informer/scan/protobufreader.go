// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// An object or a list is a message in an envelope (runtime.Unknown):
//
//	6b 38 73 00    "k8s" and a NUL
//	0a …           TypeMeta: 0a … apiVersion, 12 … kind
//	12 …           the message of an object: field 1 is its ObjectMeta;
//	               or of a list: field 1 is its ListMeta, 2 an item
//	1a … 22 …      content encoding and type: empty
//
// Items are messages without an envelope. A frame of a watch is a length of 4
// bytes, big endian, and a WatchEvent: 0a … type, 12 … a RawExtension, whose field
// 1 is an object in its envelope.
const envelopeMagic = "k8s\x00"

// openEnvelope returns the message in an envelope.
func openEnvelope(b message) (message, error) {
	inside, ok := strings.CutPrefix(string(b), envelopeMagic)
	if !ok {
		return "", protobufError("an object has no envelope")
	}
	return message(inside).delimited(2)
}

// delimited returns the last value of a length-delimited field, "" if there is none.
func (m message) delimited(fieldNumber uint64) (found message, err error) {
	for m != "" {
		field, value, _, err := m.next()
		if err != nil {
			return "", err
		}
		if field == fieldNumber {
			found = value
		}
	}
	return found, nil
}

// ScanProtobuf parses a watch event from a frame without its length. The event
// refers to frame. Errors wrap [ErrProtobuf] or [ErrNotObject].
func (e *ItemEvent) ScanProtobuf(frame []byte) error {
	*e = ItemEvent{}
	m := message(unsafeString(frame))
	typ, err := m.delimited(1)
	if err != nil {
		return err
	}
	e.Type = eventType(string(typ))
	extension, err := m.delimited(2)
	if err != nil {
		return err
	}
	raw, err := extension.delimited(1)
	if err != nil {
		return err
	}
	object, err := openEnvelope(raw)
	if err != nil {
		return err
	}
	if e.Type == kube.Error {
		e.Status = []byte(raw)
		return nil
	}
	if err := e.Item.scanProtobuf(string(object)); err != nil {
		return err
	}
	return e.check()
}

// A Status has the fields of an API server's Status that the informer needs.
type Status struct {
	Message    string
	Code       int
	RetryAfter int // seconds; 0 if not set
}

// ParseStatus parses a Status in protobuf, in its envelope.
func ParseStatus(b []byte) (Status, error) {
	var s Status
	m, err := openEnvelope(message(b))
	for err == nil && m != "" {
		before := m
		var field uint64
		var value message
		field, value, _, err = m.next()
		switch {
		case err != nil:
		case field == 3:
			s.Message = string(value)
		case field == 5: // details
			s.RetryAfter, err = value.number(5)
		case field == 6:
			s.Code, err = before[:len(before)-len(m)].number(6)
		}
	}
	return s, err
}

// number returns the last value of an int32 field, 0 if there is none.
func (m message) number(fieldNumber uint64) (n int, err error) {
	v, err := m.varint(fieldNumber)
	return int(int32(v)), err
}

// varint returns the last value of a varint field, 0 if there is none.
func (m message) varint(fieldNumber uint64) (v uint64, err error) {
	for m != "" {
		before := m
		field, _, delimited, err := m.next()
		if err != nil {
			return 0, err
		}
		if field == fieldNumber && !delimited {
			tag, size := before.uvarint()
			if tag&7 != 0 {
				continue
			}
			v, _ = before[size:].uvarint()
		}
	}
	return v, nil
}

// A ProtobufReader reads a list in protobuf item by item as it arrives, like an
// [ItemReader].
type ProtobufReader struct {
	in        *bufio.Reader
	buf       []byte // the item
	remaining uint64 // bytes of the list's message
	opened    bool   // the envelope has been read up to the message
	list      List
}

// NewProtobufReader returns a reader of the list from in; see [NewItemReader].
func NewProtobufReader(in io.Reader, like *List) *ProtobufReader {
	return &ProtobufReader{in: bufio.NewReaderSize(in, listBuffer),
		list: List{Kind: like.Kind, APIVersion: like.APIVersion, ItemKind: like.ItemKind, Typed: like.Typed}}
}

// List returns the list without its items. It is complete after the last item.
func (r *ProtobufReader) List() *List { return &r.list }

// Next reads the next item. ok is false after the last item, when the whole list
// has been read. Errors wrap [ErrProtobuf] or [ErrNotObject], or are read errors.
func (r *ProtobufReader) Next(it *Item) (ok bool, err error) {
	if !r.opened {
		if err := r.enter(); err != nil {
			return false, err
		}
		r.opened = true
	}
	for r.remaining > 0 {
		field, value, err := r.field()
		if err != nil {
			return false, err
		}
		switch field {
		case 1:
			if err := r.metadata(message(value)); err != nil {
				return false, err
			}
		case 2:
			return true, it.ScanProtobuf(value)
		}
	}
	if _, err := io.Copy(io.Discard, r.in); err != nil { // the rest of the envelope
		return false, err
	}
	if r.list.RV == 0 {
		return false, notList(r.list.Kind)
	}
	return false, nil
}

// enter reads the envelope up to the message.
func (r *ProtobufReader) enter() error {
	r.remaining = maxItem // for the envelope
	magic, err := r.bytes(uint64(len(envelopeMagic)))
	if err != nil {
		return err
	}
	if string(magic) != envelopeMagic {
		return protobufError("a list has no envelope")
	}
	for {
		tag, err := r.varint()
		if err != nil {
			return err
		}
		size, err := r.varint()
		if err != nil {
			return err
		}
		switch {
		case tag&7 != 2:
			return protobufError("a field of another type")
		case tag>>3 == 2:
			r.remaining = size
			return nil
		}
		if _, err := r.bytes(size); err != nil {
			return err
		}
	}
}

// field reads a length-delimited field; lists have no others.
func (r *ProtobufReader) field() (field uint64, value []byte, err error) {
	tag, err := r.varint()
	if err != nil {
		return 0, nil, err
	}
	if tag&7 != 2 {
		return 0, nil, protobufError("a field of another type")
	}
	size, err := r.varint()
	if err != nil {
		return 0, nil, err
	}
	value, err = r.bytes(size)
	return tag >> 3, value, err
}

func (r *ProtobufReader) varint() (v uint64, err error) {
	for i := 0; i < 70; i += 7 {
		if r.remaining == 0 {
			break
		}
		c, err := r.in.ReadByte()
		if err != nil {
			return 0, unexpectedEOF(err)
		}
		r.remaining--
		v |= uint64(c&0x7f) << i
		if c < 0x80 {
			return v, nil
		}
	}
	return 0, errVarint
}

// bytes reads n bytes into the reader's buffer.
func (r *ProtobufReader) bytes(n uint64) ([]byte, error) {
	if n > r.remaining || n > maxItem {
		return nil, protobufError("a field that is longer than its message")
	}
	if n > uint64(cap(r.buf)) {
		r.buf = make([]byte, n+n/4)
	}
	r.remaining -= n
	_, err := io.ReadFull(r.in, r.buf[:n])
	return r.buf[:n], unexpectedEOF(err)
}

// unexpectedEOF replaces io.EOF, which is the end of a complete body.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *ProtobufReader) metadata(m message) error {
	for m != "" {
		field, value, delimited, err := m.next()
		switch {
		case err != nil:
			return err
		case field == 2 && delimited:
			if r.list.RV, err = kube.ParseRV(string(value)); err != nil {
				return err
			}
		case field == 3 && delimited:
			r.list.Continue = string(value)
		}
	}
	return nil
}
