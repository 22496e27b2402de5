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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
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

// metadataKind has the kind of objects that are served as metadata only.
var metadataKind = Resource{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"}

// formatsOf returns the formats of a resource.
func formatsOf(r Resource, t table) [formats]informertest.Format {
	whole := &jsonFormat{JSON: informertest.NewJSON(r), of: r}
	return [formats]informertest.Format{
		JSON: whole, MetadataJSON: informertest.NewMetadataJSON(),
		Protobuf:         &protobufFormat{of: r, as: r},
		MetadataProtobuf: &protobufFormat{of: r, as: metadataKind, metadata: true},
		Table:            newTableFormat(whole, t, Table), TableMetadata: newTableFormat(whole, t, TableMetadata), TableBare: newTableFormat(whole, t, TableBare),
	}
}

// kindOf returns the kind of a resource's objects.
func kindOf(r Resource) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// negotiate returns the first acceptable format that the server has; nil for none.
func (s *Server) negotiate(r *Request) informertest.Format {
	all := s.formats[r.Resource.FullName()]
	kind := metadataKind.Kind
	if r.Verb == "list" {
		kind += "List"
	}
	for entry := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		typ, params, _ := strings.Cut(strings.TrimSpace(entry), ";")
		metadata, table := strings.Contains(params+";", "as="+kind+";"), strings.Contains(params, "as=Table")
		switch other := strings.Contains(params, "as=") && !metadata && !table; {
		case other:
		case typ == runtime.ContentTypeProtobuf && !table && metadata:
			return all[MetadataProtobuf]
		case typ == runtime.ContentTypeProtobuf && !table && scheme.Scheme.Recognizes(kindOf(r.Resource)):
			return all[Protobuf]
		case typ != runtime.ContentTypeJSON && typ != "application/*" && typ != "*/*" && typ != "":
		case metadata:
			return all[MetadataJSON]
		case table:
			return all[tableFormatOf(r.Query.Get("includeObject"))]
		default:
			return all[JSON]
		}
	}
	return nil
}

// typed returns an object in its Go type if the scheme has one, and unstructured
// otherwise.
func typed(o *informertest.Object, r Resource, rv string) (runtime.Object, error) {
	if m, ok := o.Content.(maker); ok {
		made := m.make()
		accessor(made).SetResourceVersion(rv)
		return made, nil
	}
	out, err := scheme.Scheme.New(kindOf(r))
	if err != nil {
		out = &unstructured.Unstructured{}
	}
	if err := json.Unmarshal(o.JSON(rv), out); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(kindOf(r))
	return out, nil
}

// encoded returns an object of a format, which may be one of a population.
func encoded(o *informertest.Object, f Format, body []byte) *informertest.Encoded {
	e := &informertest.Encoded{Body: body}
	if m, ok := o.Content.(maker); ok {
		e.Rewrite = m.rewrite(f, body)
	}
	return e
}

// A jsonFormat is whole objects.
type jsonFormat struct {
	*informertest.JSON
	of Resource
}

// Encode implements informertest.Format.
func (f *jsonFormat) Encode(o *informertest.Object, rv string) (*informertest.Encoded, error) {
	return encoded(o, JSON, o.Content.Render(rv)[1:]), nil
}

// AppendBookmark implements informertest.Format: the object has the empty fields of its
// Go type.
func (f *jsonFormat) AppendBookmark(dst []byte, rv uint64, annotations map[string]string, _ bool) ([]byte, error) {
	body, err := json.Marshal(emptyObject(f.of, rv, annotations))
	return fmt.Appendf(dst, "{\"type\":\"BOOKMARK\",\"object\":%s}\n", body), err
}

// withoutKind returns the JSON of an object without kind and apiVersion.
func withoutKind(o runtime.Object) []byte {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return mustMarshal(o)
}

// mustMarshal encodes values that this package builds.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("fakeapi: " + err.Error())
	}
	return b
}

// emptyObject returns an object of its kind with only a resourceVersion.
func emptyObject(r Resource, rv uint64, annotations map[string]string) runtime.Object {
	// This type stands in for kinds without a Go type: kind comes first, too.
	var o runtime.Object = &metav1.PartialObjectMetadata{}
	if typed, err := scheme.Scheme.New(kindOf(r)); err == nil {
		o = typed
	}
	o.GetObjectKind().SetGroupVersionKind(kindOf(r))
	a := accessor(o)
	a.SetResourceVersion(strconv.FormatUint(rv, 10))
	a.SetAnnotations(annotations)
	return o
}

// metadataOf returns an object's metadata as the API server serves it to clients that
// request metadata only.
func metadataOf(o runtime.Object) runtime.Object {
	m := meta.AsPartialObjectMetadata(accessor(o))
	m.GetObjectKind().SetGroupVersionKind(kindOf(metadataKind))
	return m
}

func accessor(o runtime.Object) metav1.Object {
	a, err := meta.Accessor(o)
	if err != nil {
		panic("fakeapi: " + err.Error())
	}
	return a
}
