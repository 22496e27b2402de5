// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const contentJSON = "application/json"

// A Format is how responses represent the objects of a resource. Formats are compared
// with ==.
type Format interface {
	ContentType(watch bool) string
	// Encode encodes what the other methods need of an object. The result has
	// the digits of rv, which has no leading zero, once.
	Encode(o *Object, rv string) (*Encoded, error)
	// AppendObject appends an object as the response to a GET.
	AppendObject(dst []byte, e *Encoded, rv uint64) []byte
	// AppendItem appends an object as part of a list.
	AppendItem(dst []byte, e *Encoded, rv uint64, first bool) []byte
	// AppendListHead and AppendListTail append the bytes around the items, whose
	// total size is given.
	AppendListHead(dst []byte, m ListMeta, size int) []byte
	AppendListTail(dst []byte) []byte
	// ItemSize returns how many bytes AppendItem appends, for formats where
	// lengths come first.
	ItemSize(e *Encoded) int
	// AppendEvent appends an event; first says that it is the first of a
	// response.
	AppendEvent(dst []byte, typ string, e *Encoded, rv uint64, first bool) []byte
	AppendBookmark(dst []byte, rv uint64, annotations map[string]string, first bool) ([]byte, error)
	AppendError(dst []byte, s *Status) ([]byte, error)
}

// ListMeta is the metadata of a list, as metav1.ListMeta.
type ListMeta struct {
	ResourceVersion    string `json:"resourceVersion,omitempty"`
	Continue           string `json:"continue,omitempty"`
	RemainingItemCount *int64 `json:"remainingItemCount,omitempty"`
}

// Encoded is an object in a format, for any resourceVersion of the same length.
type Encoded struct {
	Body []byte
	// Rewrite changes a copy of Body for a resourceVersion; nil changes nothing.
	Rewrite    func(body []byte, rv uint64)
	at, digits int // of the resourceVersion; at is -1 if Body has none
}

// AppendTo appends the body with a resourceVersion.
func (e *Encoded) AppendTo(dst []byte, rv uint64) []byte {
	begin := len(dst)
	dst = append(dst, e.Body...)
	if at := begin + e.at; e.at >= 0 {
		strconv.AppendUint(dst[at:at], rv, 10)
	}
	if e.Rewrite != nil {
		e.Rewrite(dst[begin:], rv)
	}
	return dst
}

// negotiate returns the format of a response, or the error if none is acceptable.
func (s *Server) negotiate(r *Request) (Format, *Status) {
	choose := s.opts.Format
	if choose == nil {
		choose = onlyJSON
	}
	if f := choose(r); f != nil {
		return f, nil
	}
	return nil, notAcceptable()
}

// onlyJSON returns the first acceptable format: objects, or their metadata.
func onlyJSON(r *Request) Format {
	for entry := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		typ, params, _ := strings.Cut(strings.TrimSpace(entry), ";")
		switch typ {
		case contentJSON, "application/*", "*/*", "":
			switch {
			case !strings.Contains(params, "as="):
				return r.collection.json
			case r.isMetadata(params):
				return r.collection.metadata
			}
		}
	}
	return nil
}

// isMetadata reports whether the parameters of a media type request the metadata of
// objects: PartialObjectMetadataList for lists, and PartialObjectMetadata for all else.
func (r *Request) isMetadata(params string) bool {
	kind := metadataKind.Kind
	if r.Verb == "list" {
		kind += "List"
	}
	want := map[string]string{"as": kind, "g": metadataKind.Group, "v": metadataKind.Version}
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if want[name] == value {
			delete(want, name)
		}
	}
	return len(want) == 0
}

// metadataKind has the kind of objects that are served as metadata only.
var metadataKind = Resource{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"}

// NewJSON returns the format of whole objects in JSON.
func NewJSON(r Resource) *JSON { return &JSON{r, jsonHead(r), false} }

// NewMetadataJSON returns the format of metadata in JSON, which is the same for all
// resources.
func NewMetadataJSON() *JSON { return &JSON{metadataKind, jsonHead(metadataKind), true} }

func jsonHead(r Resource) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, r.Kind, r.APIVersion())
}

// JSON is the format that every server has.
type JSON struct {
	of       Resource
	head     []byte // before the metadata of an object
	metadata bool   // only that
}

// ContentType implements Format, as the other methods do.
func (*JSON) ContentType(bool) string { return contentJSON }

// Encode returns the object without its first brace, kind and apiVersion.
func (f *JSON) Encode(o *Object, rv string) (*Encoded, error) {
	body := o.Content.Render(rv)
	if !f.metadata {
		return &Encoded{Body: body[1:]}, nil
	}
	var object struct{ Metadata json.RawMessage }
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	return &Encoded{Body: fmt.Appendf(nil, `"metadata":%s}`, object.Metadata)}, nil
}

// AppendObject appends kind, apiVersion and the body.
func (f *JSON) AppendObject(dst []byte, e *Encoded, rv uint64) []byte {
	return append(e.AppendTo(append(dst, f.head...), rv), '\n')
}

// AppendItem appends the body. As in the API server, items have no kind and apiVersion,
// except those that are metadata.
func (f *JSON) AppendItem(dst []byte, e *Encoded, rv uint64, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	if f.metadata {
		return e.AppendTo(append(dst, f.head...), rv)
	}
	return e.AppendTo(append(dst, '{'), rv)
}

// ItemSize is not needed in JSON.
func (*JSON) ItemSize(*Encoded) int { return 0 }

// AppendListHead appends all up to the items.
func (f *JSON) AppendListHead(dst []byte, m ListMeta, _ int) []byte {
	return fmt.Appendf(dst, `{"kind":"%sList","apiVersion":%q,"metadata":%s,"items":[`, f.of.Kind, f.of.APIVersion(), mustMarshal(m))
}

// AppendListTail appends what is after the items.
func (*JSON) AppendListTail(dst []byte) []byte { return append(dst, "]}\n"...) }

// AppendEvent appends a line.
func (f *JSON) AppendEvent(dst []byte, typ string, e *Encoded, rv uint64, _ bool) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, typ...)
	dst = append(dst, `","object":`...)
	return append(e.AppendTo(append(dst, f.head...), rv), "}\n"...)
}

// AppendBookmark appends a line, with an object of the kind that has only metadata.
func (f *JSON) AppendBookmark(dst []byte, rv uint64, annotations map[string]string, _ bool) ([]byte, error) {
	metadata := struct {
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	}{strconv.FormatUint(rv, 10), annotations}
	return fmt.Appendf(dst, "{\"type\":\"BOOKMARK\",\"object\":%s\"metadata\":%s}}\n", f.head, mustMarshal(metadata)), nil
}

// AppendError appends a line.
func (*JSON) AppendError(dst []byte, s *Status) ([]byte, error) {
	body, err := json.Marshal(s)
	return fmt.Appendf(dst, "{\"type\":\"ERROR\",\"object\":%s}\n", body), err
}
