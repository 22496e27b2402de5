// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// An object is one Pod as it goes over the wire, without what is put around it
// in a list or an event. Every resourceVersion has the same number of digits,
// so that a new one is written over the old.
type object struct {
	body []byte
	rvAt int
	// churn is what else is written over with a new resourceVersion.
	churn churn
}

func newObject(body []byte, rv string) (object, error) {
	at := bytes.Index(body, []byte(rv))
	if at < 0 || bytes.Contains(body[at+1:], []byte(rv)) {
		return object{}, fmt.Errorf("resourceVersion %s is to be once in %q", rv, body)
	}
	return object{body: body, rvAt: at}, nil
}

func (o object) appendTo(dst []byte, rv int64) []byte {
	begin := len(dst)
	dst = append(dst, o.body...)
	at := begin + o.rvAt
	strconv.AppendInt(dst[at:at], rv, 10)
	o.churn.write(dst[begin:], rv)
	return dst
}

// A format puts objects into lists and events.
type format interface {
	// newObject encodes an object without its kind and apiVersion.
	newObject(runtime.Object, string) (object, error)
	// appendItem appends an object as part of a list.
	appendItem(dst []byte, o object, rv int64, first bool) []byte
	// appendListHead and appendListTail append what is around the items,
	// which have the given size altogether.
	appendListHead(dst []byte, meta metav1.ListMeta, size int) []byte
	appendListTail(dst []byte) []byte
	// itemSize is what appendItem appends in protobuf.
	itemSize(o object) int
	// first says that it is the first of a response.
	appendEvent(dst []byte, typ string, o object, rv int64, first bool) []byte
	// appendOther appends an event whose object is not one of the Pods.
	appendOther(dst []byte, typ string, o runtime.Object) ([]byte, error)
	listType() string
	watchType() string
}

// jsonFormat is compact JSON, as the API server writes it.
type jsonFormat struct{ apiVersion, kind string }

func (jsonFormat) listType() string  { return runtime.ContentTypeJSON }
func (jsonFormat) watchType() string { return runtime.ContentTypeJSON }

func (jsonFormat) newObject(o runtime.Object, rv string) (object, error) {
	kind := o.GetObjectKind().GroupVersionKind()
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	defer o.GetObjectKind().SetGroupVersionKind(kind)
	body, err := json.Marshal(o)
	if err != nil {
		return object{}, err
	}
	return newObject(body[1:], rv) // the brace is put before it again
}

func (jsonFormat) appendItem(dst []byte, o object, rv int64, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return o.appendTo(append(dst, '{'), rv)
}

func (jsonFormat) itemSize(o object) int { return len(o.body) }

func (f jsonFormat) appendListHead(dst []byte, meta metav1.ListMeta, _ int) []byte {
	m, err := json.Marshal(meta)
	if err != nil {
		panic(err) // it is all strings and numbers
	}
	return fmt.Appendf(dst, `{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[`, f.kind, f.apiVersion, m)
}

func (jsonFormat) appendListTail(dst []byte) []byte { return append(dst, "]}\n"...) }

func (f jsonFormat) appendEvent(dst []byte, typ string, o object, rv int64, _ bool) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, typ...)
	dst = append(dst, `","object":{"kind":"`...)
	dst = append(dst, f.kind...)
	dst = append(dst, `","apiVersion":"`...)
	dst = append(dst, f.apiVersion...)
	dst = append(dst, `",`...)
	return append(o.appendTo(dst, rv), "}\n"...)
}

func (jsonFormat) appendOther(dst []byte, typ string, o runtime.Object) ([]byte, error) {
	body, err := json.Marshal(o)
	return fmt.Appendf(dst, "{\"type\":%q,\"object\":%s}\n", typ, body), err
}

// protoFormat is Kubernetes' protobuf.
//
//	list:      "k8s\0" Unknown{1: TypeMeta{1: apiVersion, 2: kind}, 2: raw, 3: "", 4: ""}
//	raw:       List{1: ListMeta, 2: item…}
//	event:     length (4 bytes, big endian) WatchEvent{1: type, 2: RawExtension{1: object}}
//	object:    "k8s\0" Unknown{…, 2: raw}
type protoFormat struct {
	apiVersion, kind string
	watch            string // content type of a watch
}

func (protoFormat) listType() string    { return runtime.ContentTypeProtobuf }
func (f protoFormat) watchType() string { return f.watch }

func (protoFormat) newObject(o runtime.Object, rv string) (object, error) {
	body, err := o.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		return object{}, err
	}
	return newObject(body, rv)
}

func uvarintSize(n int) int { return len(binary.AppendUvarint(nil, uint64(n))) }

// appendField begins a field of bytes.
func appendField(dst []byte, number, size int) []byte {
	return binary.AppendUvarint(append(dst, byte(number<<3|2)), uint64(size))
}

func (protoFormat) itemSize(o object) int { return 1 + uvarintSize(len(o.body)) + len(o.body) }

func (f protoFormat) appendItem(dst []byte, o object, rv int64, _ bool) []byte {
	return o.appendTo(appendField(dst, 2, len(o.body)), rv)
}

// appendUnknownHead appends what is before the raw bytes of an object.
func (f protoFormat) appendUnknownHead(dst []byte, kind string, size int) []byte {
	dst = append(dst, "k8s\x00"...)
	dst = appendField(dst, 1, 4+len(f.apiVersion)+len(kind))
	dst = append(appendField(dst, 1, len(f.apiVersion)), f.apiVersion...)
	dst = append(appendField(dst, 2, len(kind)), kind...)
	return appendField(dst, 2, size)
}

// unknownTail is the two empty strings at the end of an Unknown.
const unknownTail = "\x1a\x00\x22\x00"

func (f protoFormat) appendListHead(dst []byte, meta metav1.ListMeta, size int) []byte {
	m, err := meta.Marshal()
	if err != nil {
		panic(err) // it is all strings and numbers
	}
	dst = f.appendUnknownHead(dst, f.kind+"List", 1+uvarintSize(len(m))+len(m)+size)
	return append(appendField(dst, 1, len(m)), m...)
}

func (protoFormat) appendListTail(dst []byte) []byte { return append(dst, unknownTail...) }

func (f protoFormat) appendEvent(dst []byte, typ string, o object, rv int64, _ bool) []byte {
	var buf [64]byte
	head := f.appendUnknownHead(buf[:0], f.kind, len(o.body))
	dst = appendEventHead(dst, typ, len(head)+len(o.body)+len(unknownTail))
	dst = append(dst, head...)
	return append(o.appendTo(dst, rv), unknownTail...)
}

func appendEventHead(dst []byte, typ string, size int) []byte {
	extension := 1 + uvarintSize(size) + size
	dst = binary.BigEndian.AppendUint32(dst, uint32(2+len(typ)+1+uvarintSize(extension)+extension))
	dst = append(appendField(dst, 1, len(typ)), typ...)
	return appendField(appendField(dst, 2, extension), 1, size)
}

func (protoFormat) appendOther(dst []byte, typ string, o runtime.Object) ([]byte, error) {
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &body); err != nil {
		return dst, err
	}
	return append(appendEventHead(dst, typ, body.Len()), body.Bytes()...), nil
}
