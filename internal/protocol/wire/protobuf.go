// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// The protobuf form of an answer is an envelope (runtime.Unknown) around a
// message:
//
//	6b 38 73 00    "k8s" and a NUL
//	0a …           TypeMeta: 0a … apiVersion, 12 … kind
//	12 …           the message
//	1a 00 22 00    no content encoding, no content type
//
// A list is a message of its metadata and its items, which are messages
// without an envelope.
const (
	envelopeMagic   = "k8s\x00"
	envelopeTrailer = "\x1a\x00\x22\x00"
)

// envelope returns the parts of a message, in an envelope.
func envelope(apiVersion, kind string, message ...string) []string {
	size := 0
	for _, m := range message {
		size += len(m)
	}
	var meta []byte
	meta = append(appendLength(meta, 1, len(apiVersion)), apiVersion...)
	meta = append(appendLength(meta, 2, len(kind)), kind...)
	head := append([]byte(envelopeMagic), appendLength(nil, 1, len(meta))...)
	head = appendLength(append(head, meta...), 2, size)
	out := append(make([]string, 0, len(message)+2), string(head))
	return append(append(out, message...), envelopeTrailer)
}

// appendLength appends the tag and the length of a length-delimited field.
func appendLength(b []byte, field, length int) []byte {
	return binary.AppendUvarint(append(b, byte(field<<3|2)), uint64(length))
}

func (e *Encoder) objectProtobuf(f Form, o *scan.Object) ([]string, error) {
	message, err := e.message(f, o)
	if err != nil {
		return nil, err
	}
	if f.View == Metadata {
		return envelope("meta.k8s.io/"+f.Version, "PartialObjectMetadata", message), nil
	}
	return envelope(o.APIVersion, o.Kind, message), nil
}

// message returns an object's message, without an envelope.
func (e *Encoder) message(f Form, o *scan.Object) (string, error) {
	if f.View == Metadata {
		return e.Cache.get(o, asMetadataProtobuf, func(o *scan.Object) (string, error) {
			meta, err := e.metadata(o)
			if err != nil {
				return "", err
			}
			return marshalProtobuf(&metav1.PartialObjectMetadata{ObjectMeta: *meta})
		})
	}
	return e.Cache.get(o, asProtobuf, func(o *scan.Object) (string, error) {
		typed, err := decodeTyped(o)
		if err != nil {
			return "", err
		}
		return marshalProtobuf(typed)
	})
}

func (e *Encoder) listProtobuf(f Form, h ListHead, items []*scan.Object) (*Body, error) {
	apiVersion, kind := h.APIVersion, h.Kind
	metaField, itemsField := 1, 2
	if f.View == Metadata {
		if apiVersion, kind = "meta.k8s.io/"+f.Version, "PartialObjectMetadataList"; f.Version == "v1beta1" {
			metaField, itemsField = 2, 1
		}
	}
	list := h.meta()
	raw, err := marshalProtobuf(&list)
	if err != nil {
		return nil, err
	}
	meta := string(appendLength(nil, metaField, len(raw))) + raw
	var message Body
	if metaField < itemsField {
		message.add(meta)
	}
	err = encodeAll(&message, items, func(b *Body, _ int, run []*scan.Object) error {
		for _, o := range run {
			m, err := e.message(f, o)
			if err != nil {
				return err
			}
			b.add(string(appendLength(nil, itemsField, len(m))), m)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if metaField > itemsField {
		message.add(meta)
	}
	return &Body{envelope(apiVersion, kind, message.parts...)}, nil
}

// decodeTyped decodes an object into its type compiled in here. It returns ErrForm
// if there is no such type, if the object has a field that the type does not
// have, or if the type has a struct that the API server's release does not have:
// it would be written as an empty struct.
func decodeTyped(o *scan.Object) (runtime.Object, error) {
	typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if name := missingStruct(o, reflect.TypeOf(typed).Elem()); name != "" {
		return nil, fmt.Errorf("%w: %s of %s is newer than the API server", ErrForm, name, o.Kind)
	}
	return typed, decodeStrict(o.JSON, typed)
}

// missingStruct returns the name of a struct field of the type that the object
// lacks, "" if it lacks none. An API server that knows the field writes it, since
// JSON does not omit structs. A bookmark that the gateway made may lack all.
func missingStruct(o *scan.Object, typ reflect.Type) string {
	missing, hasStructs := "", o.Key.Name() != ""
	for field := range typ.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "metadata" || field.Type.Kind() != reflect.Struct || strings.Contains(options, "omitzero") {
			continue
		}
		if scan.Has(o.JSON, name) {
			hasStructs = true
		} else {
			missing = name
		}
	}
	if !hasStructs {
		return ""
	}
	return missing
}

func marshalProtobuf(v any) (string, error) {
	m, ok := v.(runtime.ProtobufMarshaller)
	if !ok {
		return "", fmt.Errorf("%w: %T has no protobuf", ErrForm, v)
	}
	b := make([]byte, m.(interface{ Size() int }).Size())
	n, err := m.MarshalTo(b)
	return string(b[:n]), err
}
