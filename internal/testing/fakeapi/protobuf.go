// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// protobufFormat encodes Kubernetes protobuf.
//
//	list:      "k8s\0" Unknown{1: TypeMeta{1: apiVersion, 2: kind}, 2: raw, 3: "", 4: ""}
//	raw:       List{1: ListMeta, 2: item…}
//	event:     length (4 bytes, big endian) WatchEvent{1: type, 2: RawExtension{1: object}}
//	object:    "k8s\0" Unknown{…, 2: raw}
type protobufFormat struct {
	of, as   Resource
	metadata bool
}

func (f *protobufFormat) ContentType(watch bool) string {
	switch {
	case !watch:
		return runtime.ContentTypeProtobuf
	case f.metadata:
		return runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1;stream=watch"
	}
	return runtime.ContentTypeProtobuf + ";stream=watch"
}

// Encode implements informertest.Format.
func (f *protobufFormat) Encode(o *informertest.Object, rv string) (*informertest.Encoded, error) {
	out, err := typed(o, f.of, rv)
	if err != nil {
		return nil, err
	}
	if f.metadata {
		out = metadataOf(out)
	}
	m, ok := out.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf", out)
	}
	body, err := m.Marshal()
	return encoded(o, Protobuf, body), err
}

func uvarintSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// appendField begins a field of bytes.
func appendField(dst []byte, number, size int) []byte {
	return binary.AppendUvarint(append(dst, byte(number<<3|2)), uint64(size))
}

func (f *protobufFormat) ItemSize(e *informertest.Encoded) int {
	return 1 + uvarintSize(len(e.Body)) + len(e.Body)
}

func (f *protobufFormat) AppendItem(dst []byte, e *informertest.Encoded, rv uint64, _ bool) []byte {
	return e.AppendTo(appendField(dst, 2, len(e.Body)), rv)
}

// appendUnknownHead appends the bytes before the raw bytes of an object.
func (f *protobufFormat) appendUnknownHead(dst []byte, kind string, size int) []byte {
	apiVersion := f.as.APIVersion()
	dst = append(dst, "k8s\x00"...)
	dst = appendField(dst, 1, 4+len(apiVersion)+len(kind))
	dst = append(appendField(dst, 1, len(apiVersion)), apiVersion...)
	dst = append(appendField(dst, 2, len(kind)), kind...)
	return appendField(dst, 2, size)
}

// unknownTail is the two empty strings at the end of an Unknown.
const unknownTail = "\x1a\x00\x22\x00"

func (f *protobufFormat) AppendObject(dst []byte, e *informertest.Encoded, rv uint64) []byte {
	return append(e.AppendTo(f.appendUnknownHead(dst, f.as.Kind, len(e.Body)), rv), unknownTail...)
}

func (f *protobufFormat) AppendListHead(dst []byte, meta informertest.ListMeta, size int) []byte {
	all := metav1.ListMeta{ResourceVersion: meta.ResourceVersion, Continue: meta.Continue, RemainingItemCount: meta.RemainingItemCount}
	m, err := all.Marshal()
	if err != nil {
		panic("fakeapi: " + err.Error()) // cannot happen: all fields are strings and numbers
	}
	dst = f.appendUnknownHead(dst, f.as.Kind+"List", 1+uvarintSize(len(m))+len(m)+size)
	return append(appendField(dst, 1, len(m)), m...)
}

func (f *protobufFormat) AppendListTail(dst []byte) []byte { return append(dst, unknownTail...) }

func (f *protobufFormat) AppendEvent(dst []byte, typ string, e *informertest.Encoded, rv uint64, _ bool) []byte {
	var buf [128]byte
	head := f.appendUnknownHead(buf[:0], f.as.Kind, len(e.Body))
	dst = appendEventHead(dst, typ, len(head)+len(e.Body)+len(unknownTail))
	dst = append(dst, head...)
	return append(e.AppendTo(dst, rv), unknownTail...)
}

func appendEventHead(dst []byte, typ string, size int) []byte {
	extension := 1 + uvarintSize(size) + size
	dst = binary.BigEndian.AppendUint32(dst, uint32(2+len(typ)+1+uvarintSize(extension)+extension))
	dst = append(appendField(dst, 1, len(typ)), typ...)
	return appendField(appendField(dst, 2, extension), 1, size)
}

// AppendBookmark implements informertest.Format.
func (f *protobufFormat) AppendBookmark(dst []byte, rv uint64, annotations map[string]string, _ bool) ([]byte, error) {
	return appendOther(dst, "BOOKMARK", emptyObject(f.as, rv, annotations))
}

// AppendError implements informertest.Format.
func (f *protobufFormat) AppendError(dst []byte, s *informertest.Status) ([]byte, error) {
	var status metav1.Status
	if err := json.Unmarshal(mustMarshal(s), &status); err != nil {
		return dst, err
	}
	return appendOther(dst, "ERROR", &status)
}

// appendOther appends an event whose object is none of the resource.
func appendOther(dst []byte, typ string, o runtime.Object) ([]byte, error) {
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &body); err != nil {
		return dst, err
	}
	return append(appendEventHead(dst, typ, body.Len()), body.Bytes()...), nil
}
