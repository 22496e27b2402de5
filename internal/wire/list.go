// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// mostYAML bounds the JSON that is converted to YAML, which takes some twenty
// times its size: longer lists are for the API server.
const mostYAML = 8 << 20

// mostNested bounds how deeply what is indented, as YAML and JSON for people
// are, may be nested: each line takes twice its depth in bytes, so that a small
// object could be made to take gigabytes (T10).
const mostNested = 100

// A ListHead is what a list says besides its items.
type ListHead struct {
	// Kind is the list's own kind, such as PodList.
	Kind, APIVersion string
	// Typed selects the form of the API server's own types; the other one,
	// with all keys in alphabetical order, is that of custom resources.
	Typed bool
	RV    uint64
	// Continue is the token of the next page, "" on the last one.
	Continue string
	// Remaining is the number of items behind this page; 0 is left out.
	Remaining int64
	// Columns are the columnDefinitions, for a Table.
	Columns string
}

// meta returns metadata as the API server's own types have it.
func (h ListHead) meta() metav1.ListMeta {
	m := metav1.ListMeta{ResourceVersion: kube.FormatRV(h.RV), Continue: h.Continue}
	if h.Remaining > 0 {
		m.RemainingItemCount = &h.Remaining
	}
	return m
}

// untypedMeta returns metadata as the lists of custom resources have it: with
// continue on the last page, too.
func (h ListHead) untypedMeta() map[string]any {
	m := map[string]any{"resourceVersion": kube.FormatRV(h.RV), "continue": h.Continue}
	if h.Remaining > 0 {
		m["remainingItemCount"] = h.Remaining
	}
	return m
}

// A Body is an encoded answer, in pieces that may be shared.
type Body struct{ parts []string }

func (b *Body) add(parts ...string) { b.parts = append(b.parts, parts...) }

// Size returns its length in bytes.
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
		m, err := io.WriteString(w, p)
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// String returns it in one piece.
func (b *Body) String() string { return strings.Join(b.parts, "") }

// nested returns how deeply a body of JSON is nested.
func (b *Body) nested() (deepest int) {
	depth, quoted, escaped := 0, false, false
	for _, p := range b.parts {
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
				deepest = max(deepest, depth)
			case c == '}' || c == ']':
				depth--
			}
		}
	}
	return deepest
}

// finish gives a body of JSON, without a newline behind it, its last form.
func (b *Body) finish(f Form) (*Body, error) {
	switch {
	case (f.Media == YAML || f.Pretty) && b.nested() > mostNested:
		return nil, ErrForm
	case f.Media == YAML:
		if b.Size() > mostYAML {
			return nil, ErrForm
		}
		text, err := yaml.JSONToYAML([]byte(b.String()))
		return &Body{[]string{string(text)}}, err
	case f.Pretty:
		// As the API server prints it for people: indented by two spaces,
		// without a newline behind it.
		var out bytes.Buffer
		err := json.Indent(&out, []byte(b.String()), "", "  ")
		return &Body{[]string{out.String()}}, err
	}
	b.add("\n")
	return b, nil
}

// List returns a list in the form.
func (e *Encoder) List(f Form, h ListHead, items []*scan.Object) (*Body, error) {
	switch {
	case f.Media == Protobuf:
		return e.listProtobuf(f, h, items)
	case f.Media == CBOR:
		return e.listCBOR(f, h, items)
	}
	b := &Body{}
	var err error
	switch f.View {
	case Table:
		err = e.listTable(b, f, h, items)
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

// listJSON is header, stored fragments and trailer.
func (e *Encoder) listJSON(b *Body, f Form, h ListHead, items []*scan.Object) error {
	trailer := "]}"
	if h.Typed {
		b.add(`{"kind":`+quote(h.Kind)+`,"apiVersion":`+quote(h.APIVersion)+`,"metadata":`, marshal(h.meta()), `,"items":[`)
	} else {
		b.add(`{"apiVersion":` + quote(h.APIVersion) + `,"items":[`)
		trailer = `],"kind":` + quote(h.Kind) + `,"metadata":` + marshal(h.untypedMeta()) + `}`
	}
	if f.Fields != nil {
		err := e.listProjection(b, f.Fields, items)
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
		b.add(`null}`) // as it is there
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

// marshal is for what always marshals.
func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
