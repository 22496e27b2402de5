// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// ErrProtobuf marks bytes that are not the protobuf of a Kubernetes object.
var ErrProtobuf = errors.New("malformed protobuf")

// The fields of ObjectMeta that are read.
const (
	metaName            = 1
	metaNamespace       = 3
	metaUID             = 5
	metaResourceVersion = 6
	metaLabels          = 11
	metaAnnotations     = 12
	metaManagedFields   = 17
)

func protobufError(what string) error { return fmt.Errorf("%w: %s", ErrProtobuf, what) }

// A message is what is left of a protobuf message.
type message string

// next consumes a field. The value of one that is not length-delimited is "".
func (m *message) next() (field uint64, value message, delimited bool, err error) {
	tag, err := m.varint()
	if err != nil {
		return 0, "", false, err
	}
	field = tag >> 3
	if field == 0 {
		return 0, "", false, protobufError("field 0")
	}
	size := uint64(0)
	switch tag & 7 {
	case 0:
		_, err = m.varint()
		return field, "", false, err
	case 1:
		size = 8
	case 2:
		if size, err = m.varint(); err != nil {
			return 0, "", false, err
		}
		delimited = true
	case 5:
		size = 4
	default:
		return 0, "", false, protobufError("a wire type that the API does not have")
	}
	if size > uint64(len(*m)) {
		return 0, "", false, protobufError("a field that is longer than its message")
	}
	value, *m = (*m)[:size], (*m)[size:]
	if !delimited {
		value = ""
	}
	return field, value, delimited, nil
}

func (m *message) varint() (v uint64, err error) {
	for i := 0; i < len(*m) && i < binary.MaxVarintLen64; i++ {
		c := (*m)[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			*m = (*m)[i+1:]
			return v, nil
		}
	}
	return 0, protobufError("a number that does not end")
}

// ScanProtobuf reads an object from its message, of which it becomes a part;
// what is not metadata is not looked into. Errors wrap [ErrProtobuf] or
// [ErrNotObject].
func (it *Item) ScanProtobuf(object []byte) error {
	if err := it.scanProtobuf(view(object)); err != nil {
		return err
	}
	return it.check()
}

func (it *Item) scanProtobuf(object string) error {
	*it = Item{raw: object, binary: true}
	m := message(object)
	for m != "" {
		field, meta, delimited, err := m.next()
		if err != nil {
			return err
		}
		if field != 1 {
			continue
		}
		if !delimited {
			return protobufError("metadata that is not a message")
		}
		for meta != "" {
			if err := it.metaField(&meta); err != nil {
				return err
			}
		}
	}
	return nil
}

func (it *Item) metaField(meta *message) error {
	field, value, delimited, err := meta.next()
	if err != nil {
		return err
	}
	switch field {
	case metaName, metaNamespace, metaUID, metaResourceVersion, metaLabels, metaAnnotations, metaManagedFields:
		if !delimited {
			return protobufError("a field of another type")
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
		if it.RV, err = ParseRV(string(value)); err != nil {
			return fmt.Errorf("%w: %w", ErrNotObject, err)
		}
	case metaLabels, metaAnnotations:
		k, v, err := mapEntry(value)
		if err != nil {
			return err
		}
		if field == metaAnnotations && k == initialEventsEnd {
			it.end = v == "true"
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
			return "", "", protobufError("a field of another type")
		}
	}
	return key, value, nil
}

// ProtobufLabel returns the value of a label of an object's message.
func ProtobufLabel(object []byte, label string) (found string, ok bool) {
	for m := message(view(object)); m != ""; {
		field, meta, _, err := m.next()
		if err != nil {
			return "", false
		}
		for field == 1 && meta != "" {
			field, entry, _, err := meta.next()
			if err != nil {
				return "", false
			}
			if field != metaLabels {
				continue
			}
			if k, v, err := mapEntry(entry); err == nil && k == label {
				found, ok = v, true
			}
		}
	}
	return strings.Clone(found), ok
}

// appendProtobuf appends an object's message, which was scanned before.
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
			if part := meta.kept(); part != "" {
				dst = append(dst, part...)
			}
		}
	}
	return dst
}

// protobufSize is what appendProtobuf appends without managedFields.
func protobufSize(object string) int {
	n := 0
	for m := message(object); m != ""; {
		before := m
		field, meta, _, _ := m.next()
		if field != 1 {
			n += len(before) - len(m)
			continue
		}
		kept := keptSize(meta)
		n += 1 + kept
		for v := kept; ; v >>= 7 {
			n++ // a byte of the length
			if v < 0x80 {
				break
			}
		}
	}
	return n
}

func keptSize(meta message) int {
	n := 0
	for meta != "" {
		n += len(meta.kept())
	}
	return n
}

// kept consumes a field of an ObjectMeta and returns it, "" of managedFields.
func (m *message) kept() message {
	before := *m
	if field, _, _, _ := m.next(); field == metaManagedFields {
		return ""
	}
	return before[:len(before)-len(*m)]
}
