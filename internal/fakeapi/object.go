// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// An object is the content of an object, at any resourceVersion. It is immutable
// except for its cached encodings and attributes.
type object struct {
	key, namespace, name string

	// An object was put as JSON (document), or is made for a population (maker).
	document *document
	maker    maker

	encoded    [formats]atomic.Pointer[encoded]
	attributed atomic.Pointer[attributes]
}

// A maker makes an object of a population. The result is not kept: decoded objects take
// several times the memory of their JSON.
type maker interface {
	make() runtime.Object
	// changed prepares an encoding for the changes of the object.
	changed(f Format, e *encoded)
}

func newObject(c *collection, d *document) *object {
	o := &object{document: d, name: d.name(), key: d.key(c.Namespaced)}
	if c.Namespaced {
		o.namespace = d.namespace()
	}
	return o
}

// typed returns the object in its Go type if the scheme has one, and unstructured
// otherwise.
func (o *object) typed(c *collection, rv string) (runtime.Object, error) {
	if o.maker != nil {
		made := o.maker.make()
		accessor(made).SetResourceVersion(rv)
		return made, nil
	}
	out, err := scheme.Scheme.New(c.gvk())
	if err != nil {
		out = &unstructured.Unstructured{}
	}
	if err := json.Unmarshal(o.whole(c, rv), out); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(c.gvk())
	return out, nil
}

// whole returns the complete JSON of an object that was put.
func (o *object) whole(c *collection, rv string) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,%s`, c.Kind, c.apiVersion(), o.document.render(rv))
}

// json returns the object's JSON at a version.
func (v version) json(c *collection) []byte {
	rv := strconv.FormatUint(v.rv, 10)
	if v.document != nil {
		return v.whole(c, rv)
	}
	o, err := v.typed(c, rv)
	if err != nil {
		panic("fakeapi: " + err.Error())
	}
	return mustMarshal(o)
}

// encoding returns the object in a format, with room for a resourceVersion with as many
// digits as rv.
func (o *object) encoding(c *collection, f Format, rv uint64) (*encoded, error) {
	text := strconv.FormatUint(rv, 10)
	if e := o.encoded[f].Load(); e != nil && e.digits == len(text) {
		return e, nil
	}
	body, err := c.formats[f].encode(o, text)
	if err != nil {
		return nil, err
	}
	e := &encoded{body: body, digits: len(text), at: bytes.Index(body, []byte(text))}
	if e.at >= 0 && bytes.Contains(body[e.at+1:], []byte(text)) {
		// The digits may occur elsewhere, too: encode again with other digits to find
		// the place of the resourceVersion.
		other, err := c.formats[f].encode(o, strings.Repeat(string('0'+(text[0]-'0'+1)%10), len(text)))
		if err != nil {
			return nil, err
		}
		e.at = 0
		for body[e.at] == other[e.at] {
			e.at++
		}
	}
	if o.maker != nil {
		o.maker.changed(f, e)
	}
	o.encoded[f].Store(e)
	return e, nil
}

// Attributes are the values that selectors match: labels, and any scalar of the object.
type attributes struct {
	uid    string
	labels labels.Set
	fields map[string]any
}

func (o *object) attributes(c *collection) *attributes {
	if a := o.attributed.Load(); a != nil {
		return a
	}
	a := &attributes{}
	if err := json.Unmarshal(version{o, 0}.json(c), &a.fields); err != nil {
		panic("fakeapi: " + err.Error())
	}
	u := unstructured.Unstructured{Object: a.fields}
	a.uid, a.labels = string(u.GetUID()), u.GetLabels()
	o.attributed.Store(a)
	return a
}

// Has and Get implement fields.Fields. A field that an object lacks is the empty
// string, as in the API server.
func (a *attributes) Has(string) bool { return true }

func (a *attributes) Get(path string) string {
	var value any = a.fields
	for member := range strings.SplitSeq(path, ".") {
		m, _ := value.(map[string]any)
		value = m[member]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// A document is the JSON of an object, without kind, apiVersion and
// resourceVersion.
type document struct {
	metadata, others map[string]json.RawMessage
	rv               string // in the JSON that was put
}

func parseDocument(o any) (*document, error) {
	var text []byte
	switch o := o.(type) {
	case string:
		text = []byte(o)
	case []byte:
		text = o
	default:
		text = mustMarshal(o)
	}
	d := &document{}
	if err := json.Unmarshal(text, &d.others); err != nil {
		return nil, fmt.Errorf("%w in %.200s", err, text)
	}
	if err := json.Unmarshal(d.others["metadata"], &d.metadata); err != nil || d.name() == "" {
		return nil, fmt.Errorf("an object needs metadata with a name: %.200s", text)
	}
	for _, member := range []string{"kind", "apiVersion", "metadata"} {
		delete(d.others, member)
	}
	d.rv = d.text("resourceVersion")
	delete(d.metadata, "resourceVersion")
	return d, nil
}

func (d *document) text(member string) (text string) {
	_ = json.Unmarshal(d.metadata[member], &text) // "" if it is not a string
	return text
}

func (d *document) name() string      { return d.text("name") }
func (d *document) namespace() string { return d.text("namespace") }
func (d *document) uid() string       { return d.text("uid") }

func (d *document) setUID(uid string) { d.metadata["uid"] = mustMarshal(uid) }

func (d *document) key(namespaced bool) string {
	if namespaced {
		return d.namespace() + "/" + d.name()
	}
	return d.name()
}

// render returns the JSON without its first brace, kind and apiVersion. It begins with
// metadata, which begins with the fields that identify the object.
func (d *document) render(rv string) []byte {
	out := []byte(`"metadata":{`)
	metadata := maps.Clone(d.metadata)
	metadata["resourceVersion"] = mustMarshal(rv)
	for _, member := range []string{"name", "namespace", "uid", "resourceVersion"} {
		if value, ok := metadata[member]; ok {
			out = appendMember(out, member, value)
			delete(metadata, member)
		}
	}
	for _, member := range slices.Sorted(maps.Keys(metadata)) {
		out = appendMember(out, member, metadata[member])
	}
	out = append(out, '}')
	for _, member := range slices.Sorted(maps.Keys(d.others)) {
		out = appendMember(out, member, d.others[member])
	}
	return append(out, '}')
}

func appendMember(dst []byte, name string, value json.RawMessage) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(dst, mustMarshal(name)...), ':')
	return append(dst, value...)
}

// mustMarshal encodes values that tests and this package build.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("fakeapi: " + err.Error())
	}
	return b
}
