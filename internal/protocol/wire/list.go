// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// maxYAML bounds the JSON that is converted to YAML, which takes about twenty
// times its size in memory.
const maxYAML = 8 << 20

// maxIndentDepth bounds the nesting of indented output, which is YAML and pretty
// JSON. A line takes twice its depth in bytes, so a small object that is nested
// deeply could take gigabytes (T10).
const maxIndentDepth = 100

// maxIndent is how many times its size a text may become longer by that.
const maxIndent = 8

// A ListHead is a list without its items.
type ListHead struct {
	// Kind is the list's own kind, such as PodList.
	Kind, APIVersion string
	// Typed is set for the API server's own types. Lists of custom resources
	// have all keys in alphabetical order.
	Typed bool
	RV    uint64
	// Continue is the token of the next page, "" on the last one.
	Continue string
	// Remaining is the number of items after this page; 0 is left out.
	Remaining int64
	// Columns are the columnDefinitions, for a Table.
	Columns string
}

// meta returns the metadata of lists of the API server's own types.
func (h ListHead) meta() metav1.ListMeta {
	m := metav1.ListMeta{ResourceVersion: kube.FormatRV(h.RV), Continue: h.Continue}
	if h.Remaining > 0 {
		m.RemainingItemCount = &h.Remaining
	}
	return m
}

// untypedMeta returns the metadata of lists of custom resources, which have
// continue on the last page too.
func (h ListHead) untypedMeta() map[string]any {
	m := map[string]any{"resourceVersion": kube.FormatRV(h.RV), "continue": h.Continue}
	if h.Remaining > 0 {
		m["remainingItemCount"] = h.Remaining
	}
	return m
}

// A Body is an encoded answer, in parts that may be shared.
type Body struct{ parts []string }

// NewBody returns an answer of parts that are encoded already.
func NewBody(parts ...string) *Body { return &Body{parts} }

func (b *Body) add(parts ...string) { b.parts = append(b.parts, parts...) }

// Size returns the body's length in bytes.
func (b *Body) Size() int {
	n := 0
	for _, p := range b.parts {
		n += len(p)
	}
	return n
}

// WriteTo implements io.WriterTo.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	var n int64
	for _, p := range b.parts {
		m, err := w.Write(unsafe.Slice(unsafe.StringData(p), len(p))) // a copy of each object costs more than the rest
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// String returns the body in one string.
func (b *Body) String() string { return strings.Join(b.parts, "") }

// indents reports whether a body of JSON may be indented: an indented text has at most
// maxIndentDepth levels, and is at most maxIndent times longer.
func (b *Body) indents() bool { return mayIndent(b.parts) }

func mayIndent(parts []string) bool {
	depth, maxDepth, size, more := 0, 0, 0, 0
	quoted, escaped := false, false
	for _, p := range parts {
		size += len(p)
		for i := range len(p) {
			switch c := p[i]; {
			case escaped:
				escaped = false
			case c == '"':
				quoted = !quoted
			case c == '\\':
				escaped = true
			case quoted:
			case c == '{' || c == '[':
				depth++
				maxDepth = max(maxDepth, depth)
				more += 2 * depth
			case c == '}' || c == ']':
				depth--
				more += 2 * depth
			case c == ',':
				more += 2 * depth
			}
		}
	}
	return maxDepth <= maxIndentDepth && more <= maxIndent*(size+1<<10)
}

// Indent returns JSON as kubectl prints it; as it is if it would take too much.
func Indent(text []byte) ([]byte, error) {
	if !mayIndent([]string{string(text)}) {
		return text, nil
	}
	var out bytes.Buffer
	err := json.Indent(&out, text, "", "  ")
	return out.Bytes(), err
}

// finish converts a body of JSON to YAML or pretty JSON, or adds the newline of
// plain JSON.
func (b *Body) finish(f Form) (*Body, error) {
	switch {
	case (f.Media == YAML || f.Pretty) && !b.indents():
		return nil, ErrForm
	case f.Media == YAML:
		if b.Size() > maxYAML {
			return nil, ErrForm
		}
		text, err := yaml.JSONToYAML([]byte(b.String()))
		return &Body{[]string{string(text)}}, err
	case f.Pretty:
		// As the API server does: indented by two spaces, without a final
		// newline.
		var out bytes.Buffer
		err := json.Indent(&out, []byte(b.String()), "", "  ")
		return &Body{[]string{out.String()}}, err
	}
	b.add("\n")
	return b, nil
}

// List returns the body of a LIST, in any form but XLSX, which is written by internal/serve/workbookapi.
func (e *Encoder) List(f Form, h ListHead, items []*scan.Object) (*Body, error) {
	switch {
	case f.File == CSV:
		return listCSV(f.Fields, items)
	case f.Media == Protobuf:
		return e.listProtobuf(f, h, items)
	case f.Media == CBOR:
		return e.listCBOR(f, h, items)
	}
	b := &Body{}
	var err error
	switch f.View {
	case Table:
		if items, err = e.markDefault(items); err == nil {
			err = e.listTable(b, f, h, items)
		}
	case Metadata:
		err = e.listMetadata(b, f, h, items)
	default:
		err = e.listJSON(b, f, h, items)
	}
	if err != nil {
		return nil, err
	}
	return b.finish(f)
}

// listJSON appends a header, the stored items and a trailer.
func (e *Encoder) listJSON(b *Body, f Form, h ListHead, items []*scan.Object) error {
	if f.Fields.Columns() != nil {
		return e.listRows(b, f, h, items)
	}
	trailer := "]}"
	if h.Typed {
		b.add(`{"kind":`+quote(h.Kind)+`,"apiVersion":`+quote(h.APIVersion)+`,"metadata":`, marshal(h.meta()), `,"items":[`)
	} else {
		b.add(`{"apiVersion":` + quote(h.APIVersion) + `,"items":[`)
		trailer = `],"kind":` + quote(h.Kind) + `,"metadata":` + marshal(h.untypedMeta()) + `}`
	}
	if f.Fields != nil {
		err := e.listProjection(b, f, items)
		b.add(trailer)
		return err
	}
	b.parts = slices.Grow(b.parts, 2*len(items)+2)
	for i, o := range items {
		brace, rest := o.ListItem()
		switch {
		case i == 0:
		case brace == "{":
			brace = ",{"
		default:
			brace = ","
		}
		b.add(brace, rest)
	}
	b.add(trailer)
	return nil
}

func (e *Encoder) listMetadata(b *Body, f Form, h ListHead, items []*scan.Object) error {
	b.add(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/`+f.Version+`","metadata":`, marshal(h.meta()), `,"items":`)
	if len(items) == 0 {
		b.add(`null}`) // as the API server writes it
		return nil
	}
	err := encodeAll(b, items, func(b *Body, at int, run []*scan.Object) error {
		for i, o := range run {
			separator := ","
			if at+i == 0 {
				separator = "["
			}
			meta, err := e.metadataJSON(o)
			if err != nil {
				return err
			}
			b.add(separator, partialHead[f.Version], meta, "}")
		}
		return nil
	})
	b.add("]}")
	return err
}

func quote(s string) string { return marshal(s) }

// marshal encodes a value that has no errors.
func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
