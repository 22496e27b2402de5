// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "encoding/json"

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

func (rawCodec) Protobuf() bool                             { return false }
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
