// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"weak"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Codec says how objects are asked for, and what they are to their readers.
// It must be safe for concurrent use.
type Codec[T any] interface {
	// Protobuf reports whether objects come in protobuf, which the API server
	// has for its own types only. The alternative is JSON.
	Protobuf() bool
	// Decode makes an object of its bytes, which are not to be changed or
	// kept: JSON with apiVersion and kind, or the message of the object
	// without the envelope that tells these.
	Decode(raw []byte) (T, error)
}

// Raw is the codec of objects that are left as they are, in JSON.
func Raw() Codec[json.RawMessage] { return rawCodec{} }

type rawCodec struct{}

func (rawCodec) Protobuf() bool { return false }

func (rawCodec) Decode(raw []byte) (json.RawMessage, error) { return raw, nil }

// JSON is the codec of anything that encoding/json decodes: a struct with the
// fields of interest, a pointer to one, or a map[string]any. It fits every kind
// of object.
func JSON[T any]() Codec[T] { return jsonCodec[T]{} }

type jsonCodec[T any] struct{}

func (jsonCodec[T]) Protobuf() bool { return false }

func (jsonCodec[T]) Decode(raw []byte) (v T, err error) {
	err = json.Unmarshal(raw, &v)
	return v, err
}

// A Compression keeps bytes small in memory. It must be safe for concurrent
// use, and may learn from the first objects it sees what others will look like.
// Package informer/zstd has one.
type Compression interface {
	// Compress appends src, compressed.
	Compress(dst, src []byte) []byte
	// Decompress appends what Compress made src of.
	Decompress(dst, src []byte) ([]byte, error)
}

// A record is one version of one object as it is held. But for gen, which is
// the writer's own, it does not change.
type record[T any] struct {
	id            string // "namespace/name" and the UID, one behind the other
	nsLen, keyLen uint16
	gen           uint32 // the last list that had it
	rv            uint64
	raw           []byte // compressed, if that is the policy
	how           *reading[T]
	decoded       *decoded[T] // if that is the policy
	// memo is the decoded object while someone else keeps it alive, or until
	// the next garbage collection: one that is hot is decoded once.
	memo atomic.Pointer[weak.Pointer[decoded[T]]]
}

type decoded[T any] struct {
	object T
	err    error
}

// reading is how records are read.
type reading[T any] struct {
	codec       Codec[T]
	compression Compression // nil for none
}

func (r *record[T]) key() string { return r.id[:r.keyLen] }

func (r *record[T]) uid() string { return r.id[r.keyLen:] }

// is reports whether the item is a version of the same object.
func (r *record[T]) is(it *scan.Item) bool { return r.uid() == it.UID }

func (r *record[T]) bytes() ([]byte, error) {
	if c := r.how.compression; c != nil {
		return c.Decompress(nil, r.raw)
	}
	return r.raw, nil
}

func (r *record[T]) decode() *decoded[T] {
	if r.decoded != nil {
		return r.decoded
	}
	if p := r.memo.Load(); p != nil {
		if d := p.Value(); d != nil {
			return d
		}
	}
	d := &decoded[T]{}
	var raw []byte
	if raw, d.err = r.bytes(); d.err == nil {
		d.object, d.err = r.how.codec.Decode(raw)
	}
	p := weak.Make(d)
	r.memo.Store(&p)
	return d
}

// A Ref is one version of an object, which is decoded when it is asked for. All
// that its methods return is shared and not to be changed. The zero Ref is no
// object.
type Ref[T any] struct{ r *record[T] }

// IsZero reports whether there is no object.
func (r Ref[T]) IsZero() bool { return r.r == nil }

// Key returns the object's namespace and name.
func (r Ref[T]) Key() Key {
	if r.r == nil {
		return Key{}
	}
	key := r.r.key()
	if n := int(r.r.nsLen); n > 0 {
		return Key{key[:n], key[n+1:]}
	}
	return Key{"", key}
}

// UID returns metadata.uid.
func (r Ref[T]) UID() string {
	if r.r == nil {
		return ""
	}
	return r.r.uid()
}

// RV returns metadata.resourceVersion; "" of the zero Ref.
func (r Ref[T]) RV() string {
	if r.r == nil {
		return ""
	}
	return strconv.FormatUint(r.r.rv, 10)
}

// errNoObject is what is wrong with the zero Ref.
var errNoObject = errors.New("no object")

// Object returns the object, decoded. It remembers it as long as there is use
// of it, so that of several readers one decodes.
func (r Ref[T]) Object() (T, error) {
	if r.r == nil {
		var none T
		return none, errNoObject
	}
	d := r.r.decode()
	return d.object, d.err
}

// Raw returns the object's bytes as the codec gets them.
func (r Ref[T]) Raw() ([]byte, error) {
	if r.r == nil {
		return nil, errNoObject
	}
	return r.r.bytes()
}

// Label returns the value of a label, without decoding the object.
func (r Ref[T]) Label(key string) (value string, ok bool) {
	raw, err := r.Raw()
	switch {
	case err != nil:
		return "", false
	case r.r.how.codec.Protobuf():
		return scan.ProtobufLabel(raw, key)
	}
	return scan.ItemLabel(raw, key)
}
