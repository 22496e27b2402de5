// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"iter"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"
	"weak"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Codec decides in which encoding objects are requested, and decodes them.
// Its methods must be safe for concurrent use.
type Codec[T any] interface {
	// Protobuf reports whether objects are requested in protobuf, which API
	// servers offer for their built-in types only. Otherwise, and with [Options].JSON,
	// they are requested in JSON.
	Protobuf() bool
	// Decode decodes an object: JSON with apiVersion and kind, or the object's
	// protobuf message without the envelope that names these. It must not
	// modify raw, nor keep it.
	Decode(raw []byte) (T, error)
}

// Raw returns a codec that leaves objects as JSON.
func Raw() Codec[json.RawMessage] { return rawCodec{} }

type rawCodec struct{}

func (rawCodec) Protobuf() bool                             { return false }
func (rawCodec) Decode(raw []byte) (json.RawMessage, error) { return raw, nil }

// JSON returns a codec that decodes with encoding/json: into a struct with the
// fields of interest, a pointer to one, or a map[string]any. It is usable for
// every resource. As in Kubernetes, names match exactly, and not in any case as with
// encoding/json alone: a field for nodeName needs the tag json:"nodeName". Types with a
// method UnmarshalJSON decode as they do.
func JSON[T any]() Codec[T] { return jsonCodec[T]{shapeOf(reflect.TypeFor[T]())} }

type jsonCodec[T any] struct{ shape *scan.Shape }

func (jsonCodec[T]) Protobuf() bool { return false }

func (c jsonCodec[T]) Decode(raw []byte) (v T, err error) {
	err = json.Unmarshal(c.shape.Exact(raw), &v)
	return v, err
}

// A Compression compresses the bytes of objects in memory. Its methods must be
// safe for concurrent use. It may adapt to the objects that it has seen.
// Package informer/zstd implements one.
type Compression interface {
	// Compress appends the compressed src to dst.
	Compress(dst, src []byte) []byte
	// Decompress appends to dst the bytes that Compress made src of.
	Decompress(dst, src []byte) ([]byte, error)
}

// A record is one version of an object as it is stored. It is immutable, but
// for listID, which belongs to the shard's writer, and memo.
type record[T any] struct {
	id                   string // "namespace/name", followed by the UID
	namespaceLen, keyLen uint16
	listID               uint32 // of the last list that had this version
	rv                   uint64
	raw                  []byte // compressed if Options.Compression is set
	format               *format[T]
	decoded              *decoded[T] // if Options.Decoded is set
	// memo has the decoded object as long as a reader keeps it alive, so that
	// concurrent readers share one.
	memo atomic.Pointer[weak.Pointer[decoded[T]]]
}

type decoded[T any] struct {
	object T
	err    error
}

// A format is how the records of an informer are encoded.
type format[T any] struct {
	codec       Codec[T]
	protobuf    bool                 // the objects are, and not JSON
	compression Compression          // nil for none
	mutations   *mutationDetector[T] // nil for none
}

func (r *record[T]) key() string { return r.id[:r.keyLen] }
func (r *record[T]) uid() string { return r.id[r.keyLen:] }

// sameObject reports whether the item is a version of the record's object.
func (r *record[T]) sameObject(it *scan.Item) bool { return r.uid() == it.UID }

func (r *record[T]) bytes() ([]byte, error) {
	if c := r.format.compression; c != nil {
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
	d := r.decodeAnew()
	p := weak.Make(d)
	r.memo.Store(&p)
	return d
}

// decodeAnew returns an object that nobody else has.
func (r *record[T]) decodeAnew() *decoded[T] {
	d := &decoded[T]{}
	var raw []byte
	if raw, d.err = r.bytes(); d.err == nil {
		d.object, d.err = r.format.codec.Decode(raw)
	}
	return d
}

// A Ref is one version of an object, decoded on demand. Any goroutine may call
// its methods. What they return is shared and must not be modified; tests find where
// it is with [Options].DetectMutation. The zero Ref is no object: it has the zero Key, and
// no labels or anything else.
type Ref[T any] struct{ r *record[T] }

// IsZero reports whether the Ref is no object.
func (r Ref[T]) IsZero() bool { return r.r == nil }

// Key returns the object's namespace and name; the zero Key for the zero Ref.
func (r Ref[T]) Key() Key {
	if r.r == nil {
		return Key{}
	}
	key := r.r.key()
	if n := int(r.r.namespaceLen); n > 0 {
		return Key{key[:n], key[n+1:]}
	}
	return Key{"", key}
}

// UID returns metadata.uid; "" for the zero Ref.
func (r Ref[T]) UID() string {
	if r.r == nil {
		return ""
	}
	return r.r.uid()
}

// RV returns metadata.resourceVersion; "" for the zero Ref.
func (r Ref[T]) RV() string {
	if r.r == nil {
		return ""
	}
	return strconv.FormatUint(r.r.rv, 10)
}

// Object returns the decoded object, with the codec's error; [ErrNoObject] for the zero
// Ref. All who read this version share the result, until the garbage collector frees it;
// with [Options].Decoded, for as long as the version is held.
func (r Ref[T]) Object() (T, error) {
	if r.r == nil {
		var none T
		return none, ErrNoObject
	}
	d := r.r.decode()
	r.r.format.mutations.share(r.r, d)
	return d.object, d.err
}

// Raw returns the object's bytes, as the codec receives them. It returns the
// error of the decompression; for the zero Ref, an error too.
func (r Ref[T]) Raw() ([]byte, error) {
	if r.r == nil {
		return nil, ErrNoObject
	}
	r.r.format.mutations.share(r.r, nil)
	return r.r.bytes()
}

// encoded returns the object's bytes, and whether they are protobuf; none, in which nothing
// is found, for the zero Ref and after an error of the decompression.
func (r Ref[T]) encoded() (raw []byte, isProtobuf bool) {
	if r.r == nil {
		return nil, false
	}
	raw, err := r.r.bytes()
	if err != nil {
		return nil, false
	}
	return raw, r.r.format.protobuf && (len(raw) == 0 || raw[0] != '{') // the upstream may have had JSON only
}

// Label returns the value of a label without decoding the object; ok is false
// if the object has no such label.
func (r Ref[T]) Label(key string) (value string, ok bool) {
	raw, isProtobuf := r.encoded()
	if isProtobuf {
		return scan.ProtobufLabel(raw, key)
	}
	return scan.ItemLabel(raw, key)
}

// Annotation returns the value of an annotation without decoding the object; ok is false
// if the object has no such annotation.
func (r Ref[T]) Annotation(key string) (value string, ok bool) {
	raw, isProtobuf := r.encoded()
	if isProtobuf {
		return scan.ProtobufAnnotation(raw, key)
	}
	return scan.ItemAnnotation(raw, key)
}

// DeletionTimestamp returns metadata.deletionTimestamp without decoding the object; the zero
// time if no deletion was requested.
func (r Ref[T]) DeletionTimestamp() time.Time {
	raw, isProtobuf := r.encoded()
	if isProtobuf {
		return scan.ProtobufDeletion(raw)
	}
	return scan.ItemDeletion(raw)
}

// Finalizers returns metadata.finalizers without decoding the object.
func (r Ref[T]) Finalizers() []string {
	raw, isProtobuf := r.encoded()
	if isProtobuf {
		return scan.ProtobufFinalizers(raw)
	}
	return scan.ItemFinalizers(raw)
}

// Generation returns metadata.generation without decoding the object; 0 if the object
// has none, as those of some resources.
func (r Ref[T]) Generation() int64 {
	raw, isProtobuf := r.encoded()
	if isProtobuf {
		return scan.ProtobufGeneration(raw)
	}
	return scan.ItemGeneration(raw)
}

// An Owner is an owner of an object, as metadata.ownerReferences have it. It is in the
// object's namespace, or cluster-scoped.
type Owner struct {
	APIVersion, Kind, Name, UID string
	Controller                  bool // the owner is the object's controller
}

// Owners returns the owners of the object, without decoding it.
func (r Ref[T]) Owners() (all []Owner) {
	for o := range r.owners() {
		all = append(all, Owner(o.Clone()))
	}
	return all
}

// Controller returns the owner that is the object's controller, without decoding the
// object; ok is false if the object has none.
func (r Ref[T]) Controller() (o Owner, ok bool) {
	for o := range r.owners() {
		if o.Controller {
			return Owner(o.Clone()), true
		}
	}
	return Owner{}, false
}

func (r Ref[T]) owners() iter.Seq[scan.Owner] {
	raw, isProtobuf := r.encoded()
	if isProtobuf {
		return scan.ProtobufOwners(raw)
	}
	return scan.ItemOwners(raw)
}
