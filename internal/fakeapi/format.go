// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/internal/fakeapi/synthetic"
)

// A Format is a form in which objects are served.
type Format int

// The formats.
const (
	JSON             Format = iota
	Protobuf                // of resources that are in client-go's scheme
	MetadataJSON            // as PartialObjectMetadata
	MetadataProtobuf        // as PartialObjectMetadata
	Table                   // in JSON, with includeObject=Object
	TableMetadata           // in JSON, with includeObject=Metadata, the default
	TableBare               // in JSON, with includeObject=None
	formats          = iota
)

// encoded is one object in one format, without the bytes around it in a list or an
// event. It is encoded once: another resourceVersion with as many digits overwrites the
// one in it, and so do the changes of a population.
type encoded struct {
	body       []byte
	at, digits int // of the resourceVersion; at is -1 in a row without its object
	churn      *synthetic.Churn
}

func (e *encoded) appendTo(dst []byte, rv uint64) []byte {
	begin := len(dst)
	dst = append(dst, e.body...)
	if at := begin + e.at; e.at >= 0 {
		strconv.AppendUint(dst[at:at], rv, 10)
	}
	if e.churn != nil {
		e.churn.Write(dst[begin:], rv)
	}
	return dst
}

// An encoder puts objects into responses, in one format.
type encoder interface {
	// encode encodes the parts of an object that the other methods need.
	encode(o *object, rv string) ([]byte, error)
	// appendObject appends an object as the response to a GET.
	appendObject(dst []byte, e *encoded, rv uint64) []byte
	// appendItem appends an object as part of a list.
	appendItem(dst []byte, e *encoded, rv uint64, first bool) []byte
	// appendListHead and appendListTail append the bytes around the items, whose
	// total size is given.
	appendListHead(dst []byte, m metav1.ListMeta, size int) []byte
	appendListTail(dst []byte) []byte
	// itemSize returns how many bytes appendItem appends in protobuf, where lengths
	// come first.
	itemSize(e *encoded) int
	// appendEvent appends an event; first says that it is the first of a
	// response.
	appendEvent(dst []byte, typ string, e *encoded, rv uint64, first bool) []byte
	// appendOther appends an event whose object is a bookmark or a Status.
	appendOther(dst []byte, typ string, o runtime.Object, first bool) ([]byte, error)
	// bookmark returns the object of a bookmark.
	bookmark(rv uint64, annotations map[string]string) runtime.Object
	contentType(watch bool) string
}

// metadataKind has the kind of objects that are served as metadata only.
var metadataKind = Resource{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"}

// encodersOf returns the encoders of a collection by format.
func encodersOf(c *collection) [formats]encoder {
	whole, metadata := &jsonEncoder{c: c, as: c.Resource}, &jsonEncoder{c: c, as: metadataKind, metadata: true}
	return [formats]encoder{
		JSON: whole, MetadataJSON: metadata,
		Protobuf:         &protobufEncoder{c: c, as: c.Resource},
		MetadataProtobuf: &protobufEncoder{c: c, as: metadataKind, metadata: true},
		Table:            newTableEncoder(whole, true), TableMetadata: newTableEncoder(metadata, true), TableBare: newTableEncoder(metadata, false),
	}
}

// negotiate returns the first format that the client accepts and the server supports.
func negotiate(r *Request) (Format, bool) {
	for entry := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		typ, params, _ := strings.Cut(strings.TrimSpace(entry), ";")
		metadata, table := strings.Contains(params, "as=PartialObjectMetadata"), strings.Contains(params, "as=Table")
		switch other := strings.Contains(params, "as=") && !metadata && !table; {
		case other:
		case typ == runtime.ContentTypeProtobuf && !table && metadata:
			return MetadataProtobuf, true
		case typ == runtime.ContentTypeProtobuf && !table && scheme.Scheme.Recognizes(r.Resource.gvk()):
			return Protobuf, true
		case typ != runtime.ContentTypeJSON && typ != "application/*" && typ != "*/*" && typ != "":
		case metadata:
			return MetadataJSON, true
		case table:
			return tableFormat(r.Query.Get("includeObject")), true
		default:
			return JSON, true
		}
	}
	return 0, false
}

// jsonEncoder encodes compact JSON, as the API server does for built-in types: kind
// comes first, and items have none. (For custom resources, kube-apiserver uses another
// form.)
type jsonEncoder struct {
	c        *collection
	as       Resource
	metadata bool
}

func (f *jsonEncoder) contentType(bool) string { return runtime.ContentTypeJSON }

// encode omits the first brace, kind and apiVersion, which the items of a list do not
// have.
func (f *jsonEncoder) encode(o *object, rv string) ([]byte, error) {
	if o.document != nil && !f.metadata {
		return o.document.render(rv), nil
	}
	typed, err := o.typed(f.c, rv)
	if err != nil {
		return nil, err
	}
	if f.metadata {
		typed = metadataOf(typed)
	}
	if u, ok := typed.(*unstructured.Unstructured); ok {
		delete(u.Object, "kind")
		delete(u.Object, "apiVersion")
		return mustMarshal(u.Object)[1:], nil
	}
	typed.GetObjectKind().SetGroupVersionKind(Resource{}.gvk())
	return mustMarshal(typed)[1:], nil
}

func (f *jsonEncoder) appendHead(dst []byte) []byte {
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, f.as.Kind...)
	dst = append(dst, `","apiVersion":"`...)
	if f.as.Group != "" {
		dst = append(append(dst, f.as.Group...), '/')
	}
	dst = append(dst, f.as.Version...)
	return append(dst, `",`...)
}

func (f *jsonEncoder) appendObject(dst []byte, e *encoded, rv uint64) []byte {
	return append(e.appendTo(f.appendHead(dst), rv), '\n')
}

func (f *jsonEncoder) appendItem(dst []byte, e *encoded, rv uint64, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return e.appendTo(append(dst, '{'), rv)
}

func (f *jsonEncoder) itemSize(*encoded) int { return 0 }

func (f *jsonEncoder) appendListHead(dst []byte, m metav1.ListMeta, _ int) []byte {
	return fmt.Appendf(dst, `{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[`, f.as.Kind, f.as.apiVersion(), mustMarshal(m))
}

func (f *jsonEncoder) appendListTail(dst []byte) []byte { return append(dst, "]}\n"...) }

func (f *jsonEncoder) appendEvent(dst []byte, typ string, e *encoded, rv uint64, _ bool) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, typ...)
	dst = append(dst, `","object":`...)
	return append(e.appendTo(f.appendHead(dst), rv), "}\n"...)
}

func (f *jsonEncoder) appendOther(dst []byte, typ string, o runtime.Object, _ bool) ([]byte, error) {
	body, err := json.Marshal(o)
	return fmt.Appendf(dst, "{\"type\":%q,\"object\":%s}\n", typ, body), err
}

func (f *jsonEncoder) bookmark(rv uint64, annotations map[string]string) runtime.Object {
	return emptyObject(f.as, rv, annotations)
}

// emptyObject returns an object of its kind with only a resourceVersion.
func emptyObject(r Resource, rv uint64, annotations map[string]string) runtime.Object {
	// This type stands in for kinds without a Go type: kind comes first, too.
	var o runtime.Object = &metav1.PartialObjectMetadata{}
	if typed, err := scheme.Scheme.New(r.gvk()); err == nil {
		o = typed
	}
	o.GetObjectKind().SetGroupVersionKind(r.gvk())
	a := accessor(o)
	a.SetResourceVersion(strconv.FormatUint(rv, 10))
	a.SetAnnotations(annotations)
	return o
}

// metadataOf returns an object's metadata as the API server serves it to clients that
// request metadata only.
func metadataOf(o runtime.Object) runtime.Object {
	m := meta.AsPartialObjectMetadata(accessor(o))
	m.GetObjectKind().SetGroupVersionKind(metadataKind.gvk())
	return m
}

func accessor(o runtime.Object) metav1.Object {
	a, err := meta.Accessor(o)
	if err != nil {
		panic("fakeapi: " + err.Error())
	}
	return a
}
