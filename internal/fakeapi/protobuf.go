// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobufEncoder encodes Kubernetes protobuf.
//
//	list:      "k8s\0" Unknown{1: TypeMeta{1: apiVersion, 2: kind}, 2: raw, 3: "", 4: ""}
//	raw:       List{1: ListMeta, 2: item…}
//	event:     length (4 bytes, big endian) WatchEvent{1: type, 2: RawExtension{1: object}}
//	object:    "k8s\0" Unknown{…, 2: raw}
type protobufEncoder struct {
	c        *collection
	as       Resource
	metadata bool
}

func (f *protobufEncoder) contentType(watch bool) string {
	switch {
	case !watch:
		return runtime.ContentTypeProtobuf
	case f.metadata:
		return runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1;stream=watch"
	}
	return runtime.ContentTypeProtobuf + ";stream=watch"
}

func (f *protobufEncoder) encode(o *object, rv string) ([]byte, error) {
	typed, err := o.typed(f.c, rv)
	if err != nil {
		return nil, err
	}
	if f.metadata {
		typed = metadataOf(typed)
	}
	m, ok := typed.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf", typed)
	}
	return m.Marshal()
}

func uvarintSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// appendField begins a field of bytes.
func appendField(dst []byte, number, size int) []byte {
	return binary.AppendUvarint(append(dst, byte(number<<3|2)), uint64(size))
}

func (f *protobufEncoder) itemSize(e *encoded) int {
	return 1 + uvarintSize(len(e.body)) + len(e.body)
}

func (f *protobufEncoder) appendItem(dst []byte, e *encoded, rv uint64, _ bool) []byte {
	return e.appendTo(appendField(dst, 2, len(e.body)), rv)
}

// appendUnknownHead appends the bytes before the raw bytes of an object.
func (f *protobufEncoder) appendUnknownHead(dst []byte, kind string, size int) []byte {
	apiVersion := f.as.Version
	if f.as.Group != "" {
		apiVersion = f.as.Group + "/" + f.as.Version
	}
	dst = append(dst, "k8s\x00"...)
	dst = appendField(dst, 1, 4+len(apiVersion)+len(kind))
	dst = append(appendField(dst, 1, len(apiVersion)), apiVersion...)
	dst = append(appendField(dst, 2, len(kind)), kind...)
	return appendField(dst, 2, size)
}

// unknownTail is the two empty strings at the end of an Unknown.
const unknownTail = "\x1a\x00\x22\x00"

func (f *protobufEncoder) appendObject(dst []byte, e *encoded, rv uint64) []byte {
	return append(e.appendTo(f.appendUnknownHead(dst, f.as.Kind, len(e.body)), rv), unknownTail...)
}

func (f *protobufEncoder) appendListHead(dst []byte, meta metav1.ListMeta, size int) []byte {
	m, err := meta.Marshal()
	if err != nil {
		panic("fakeapi: " + err.Error()) // cannot happen: all fields are strings and numbers
	}
	dst = f.appendUnknownHead(dst, f.as.Kind+"List", 1+uvarintSize(len(m))+len(m)+size)
	return append(appendField(dst, 1, len(m)), m...)
}

func (f *protobufEncoder) appendListTail(dst []byte) []byte { return append(dst, unknownTail...) }

func (f *protobufEncoder) appendEvent(dst []byte, typ string, e *encoded, rv uint64, _ bool) []byte {
	var buf [128]byte
	head := f.appendUnknownHead(buf[:0], f.as.Kind, len(e.body))
	dst = appendEventHead(dst, typ, len(head)+len(e.body)+len(unknownTail))
	dst = append(dst, head...)
	return append(e.appendTo(dst, rv), unknownTail...)
}

func appendEventHead(dst []byte, typ string, size int) []byte {
	extension := 1 + uvarintSize(size) + size
	dst = binary.BigEndian.AppendUint32(dst, uint32(2+len(typ)+1+uvarintSize(extension)+extension))
	dst = append(appendField(dst, 1, len(typ)), typ...)
	return appendField(appendField(dst, 2, extension), 1, size)
}

func (f *protobufEncoder) appendOther(dst []byte, typ string, o runtime.Object, _ bool) ([]byte, error) {
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &body); err != nil {
		return dst, err
	}
	return append(appendEventHead(dst, typ, body.Len()), body.Bytes()...), nil
}

func (f *protobufEncoder) bookmark(rv uint64, annotations map[string]string) runtime.Object {
	return emptyObject(f.as, rv, annotations)
}
