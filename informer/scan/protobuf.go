// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// ErrProtobuf marks bytes that are not a Kubernetes object, list or event in
// protobuf.
var ErrProtobuf = errors.New("malformed protobuf")

// The fields of ObjectMeta that are read.
const (
	metaName            = 1
	metaNamespace       = 3
	metaUID             = 5
	metaResourceVersion = 6
	metaGeneration      = 7
	metaDeletion        = 9
	metaLabels          = 11
	metaAnnotations     = 12
	metaOwnerReferences = 13
	metaFinalizers      = 14
	metaManagedFields   = 17
)

func protobufError(what string) error { return fmt.Errorf("%w: %s", ErrProtobuf, what) }

// A message is a protobuf message, or its rest.
type message string

// next consumes a field. It returns the value of a length-delimited field only.
func (m *message) next() (field uint64, value message, delimited bool, err error) {
	rest := *m
	tag, n := rest.uvarint()
	if n == 0 {
		return 0, "", false, errVarint
	}
	rest = rest[n:]
	field = tag >> 3
	if field == 0 {
		return 0, "", false, protobufError("field 0")
	}
	size := uint64(0)
	switch tag & 7 {
	case 0:
		if _, n = rest.uvarint(); n == 0 {
			return 0, "", false, errVarint
		}
		size = uint64(n)
	case 1:
		size = 8
	case 2:
		if size, n = rest.uvarint(); n == 0 {
			return 0, "", false, errVarint
		}
		rest, delimited = rest[n:], true
	case 5:
		size = 4
	default:
		return 0, "", false, protobufError("unknown wire type")
	}
	if size > uint64(len(rest)) {
		return 0, "", false, protobufError("a field is longer than its message")
	}
	*m = rest[size:]
	if delimited {
		value = rest[:size]
	}
	return field, value, delimited, nil
}

var errVarint = protobufError("a truncated varint")

// uvarint returns the varint at the beginning of the message and its length in
// bytes, 0 if it is truncated.
func (m message) uvarint() (v uint64, n int) {
	if m != "" && m[0] < 0x80 {
		return uint64(m[0]), 1 // nearly always
	}
	return m.longUvarint()
}

func (m message) longUvarint() (v uint64, n int) {
	for i := 0; i < len(m) && i < binary.MaxVarintLen64; i++ {
		c := m[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// ScanProtobuf parses the metadata of an object's message. The item refers to
// object. Errors wrap [ErrProtobuf] or [ErrNotObject].
func (it *Item) ScanProtobuf(object []byte) error {
	if err := it.scanProtobuf(unsafeString(object)); err != nil {
		return err
	}
	return it.check()
}

func (it *Item) scanProtobuf(object string) error {
	*it = Item{raw: object, binary: true}
	m := message(object)
	for m != "" {
		before := len(m)
		field, meta, delimited, err := m.next()
		if err != nil {
			return err
		}
		if field != 1 {
			it.trimmed += before - len(m)
			continue
		}
		if !delimited {
			return protobufError("metadata is not a message")
		}
		kept := len(meta)
		for meta != "" {
			before := len(meta)
			field, value, delimited, err := meta.next()
			if err != nil {
				return err
			}
			if field == metaManagedFields {
				kept -= before - len(meta)
			}
			if err := it.metaField(field, value, delimited); err != nil {
				return err
			}
		}
		it.trimmed += 1 + (bits.Len(uint(kept)|1)+6)/7 + kept // tag, varint of the length, message
	}
	return nil
}

func (it *Item) metaField(field uint64, value message, delimited bool) (err error) {
	switch field {
	case metaName, metaNamespace, metaUID, metaResourceVersion, metaLabels, metaAnnotations, metaManagedFields:
		if !delimited {
			return protobufError("a field has the wrong type")
		}
	}
	switch field {
	case metaName:
		it.Name = string(value)
	case metaNamespace:
		it.Namespace = string(value)
	case metaUID:
		it.UID = string(value)
	case metaResourceVersion:
		if it.RV, err = kube.ParseRV(string(value)); err != nil {
			return fmt.Errorf("%w: %w", ErrNotObject, err)
		}
	case metaLabels, metaAnnotations:
		k, v, err := mapEntry(value)
		if err != nil {
			return err
		}
		if field == metaAnnotations && k == initialEventsEnd {
			it.endMarked = v == "true"
		}
	}
	return nil
}

func mapEntry(entry message) (key, value string, err error) {
	for entry != "" {
		field, v, delimited, err := entry.next()
		if err != nil {
			return "", "", err
		}
		switch field {
		case 1:
			key = string(v)
		case 2:
			value = string(v)
		}
		if field <= 2 && !delimited {
			return "", "", protobufError("a field has the wrong type")
		}
	}
	return key, value, nil
}

// ProtobufLabel returns the value of a label of an object's message.
func ProtobufLabel(object []byte, label string) (found string, ok bool) {
	return protobufEntry(object, metaLabels, label)
}

// protobufEntry returns a text in a map of the metadata of an object's message.
func protobufEntry(object []byte, in uint64, key string) (found string, ok bool) {
	for m := message(unsafeString(object)); m != ""; {
		field, meta, _, err := m.next()
		if err != nil {
			return "", false
		}
		for field == 1 && meta != "" {
			field, entry, _, err := meta.next()
			if err != nil {
				return "", false
			}
			if field != in {
				continue
			}
			if k, v, err := mapEntry(entry); err == nil && k == key {
				found, ok = v, true
			}
		}
	}
	return strings.Clone(found), ok
}

// appendProtobuf appends an object's message, which is valid.
func appendProtobuf(dst []byte, object string, managedFields bool) []byte {
	if managedFields {
		return append(dst, object...)
	}
	for m := message(object); m != ""; {
		before := m
		field, meta, _, _ := m.next()
		if field != 1 {
			dst = append(dst, before[:len(before)-len(m)]...)
			continue
		}
		dst = binary.AppendUvarint(append(dst, 1<<3|2), uint64(keptSize(meta)))
		for meta != "" {
			dst = append(dst, meta.kept()...)
		}
	}
	return dst
}

func keptSize(meta message) int {
	n := 0
	for meta != "" {
		n += len(meta.kept())
	}
	return n
}

// kept consumes the fields of an ObjectMeta up to and including the first of
// managedFields, and returns those before that.
func (m *message) kept() message {
	all := *m
	for *m != "" {
		left := len(*m)
		if field, _, _, _ := m.next(); field == metaManagedFields {
			return all[:len(all)-left]
		}
	}
	return all
}
