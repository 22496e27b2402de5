// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// An Object is the content of an object, at any resourceVersion. It is immutable except
// for its cached encodings and attributes.
type Object struct {
	Key, Namespace, Name string
	Content              Content

	of         Resource
	mu         sync.Mutex               // serializes changes of encoded
	encoded    atomic.Pointer[[]cached] // never changed
	attributed atomic.Pointer[attributes]
}

// A Content is what an object consists of.
type Content interface {
	// Render returns the JSON of the object with a resourceVersion, but without
	// kind and apiVersion. It begins with metadata.
	Render(rv string) []byte
}

// cached is an encoding of an object.
type cached struct {
	in Format
	*Encoded
}

// JSON returns the whole object at a resourceVersion.
func (o *Object) JSON(rv string) []byte {
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,%s`, o.of.Kind, o.of.APIVersion(), o.Content.Render(rv)[1:])
}

// encodings returns the encodings of the object so far.
func (o *Object) encodings() []cached {
	if all := o.encoded.Load(); all != nil {
		return *all
	}
	return nil
}

// encoding returns the object in a format, with room for a resourceVersion with as many
// digits as rv.
func (o *Object) encoding(f Format, rv uint64) (*Encoded, error) {
	text := strconv.FormatUint(rv, 10)
	isIt := func(c cached) bool { return c.in == f && c.digits == len(text) }
	if all := o.encodings(); slices.ContainsFunc(all, isIt) {
		return all[slices.IndexFunc(all, isIt)].Encoded, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	e, err := encode(o, f, text)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(o.encodings()), func(c cached) bool { return c.in == f })
	o.encoded.Store(new(append(others, cached{f, e})))
	return e, nil
}

func encode(o *Object, f Format, rv string) (*Encoded, error) {
	e, err := f.Encode(o, rv)
	if err != nil {
		return nil, err
	}
	e.digits, e.at = len(rv), bytes.Index(e.Body, []byte(rv))
	if e.at >= 0 && bytes.Contains(e.Body[e.at+1:], []byte(rv)) {
		// The digits may occur elsewhere, too: encode again with other digits to find
		// the place of the resourceVersion.
		other, err := f.Encode(o, strings.Repeat(string('0'+(rv[0]-'0'+1)%10), len(rv)))
		if err != nil {
			return nil, err
		}
		e.at = 0
		for e.Body[e.at] == other.Body[e.at] {
			e.at++
		}
	}
	return e, nil
}

// attributes are the values that selectors match: labels, and any scalar of the object.
type attributes struct {
	uid    string
	labels map[string]string
	fields map[string]any
}

func (o *Object) attributes() *attributes {
	if a := o.attributed.Load(); a != nil {
		return a
	}
	a := &attributes{}
	var identity struct {
		Metadata struct {
			UID    string
			Labels map[string]string
		}
	}
	text := o.JSON("0")
	for _, into := range []any{&a.fields, &identity} {
		if err := json.Unmarshal(text, into); err != nil {
			panic("informertest: " + err.Error())
		}
	}
	a.uid, a.labels = identity.Metadata.UID, identity.Metadata.Labels
	o.attributed.Store(a)
	return a
}

// field returns the value of a field. A field that an object lacks is the empty string,
// as in the API server.
func (a *attributes) field(path string) string {
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

// parseDocument returns a document, which has a name.
func parseDocument(o any) (*document, error) {
	d, err := parse(o)
	if err == nil && d.name() == "" {
		err = errors.New("an object needs metadata with a name")
	}
	return d, err
}

func parse(o any) (*document, error) {
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
	if err := json.Unmarshal(d.others["metadata"], &d.metadata); err != nil || d.metadata == nil {
		return nil, fmt.Errorf("an object needs metadata: %.200s", text)
	}
	for _, member := range []string{"labels", "annotations"} {
		var all map[string]string
		if value, ok := d.metadata[member]; ok && json.Unmarshal(value, &all) != nil {
			return nil, fmt.Errorf("the %s of an object are a map of strings, not %.200s", member, value)
		}
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

func (d *document) set(member string, value any) { d.metadata[member] = mustMarshal(value) }

// hasFinalizers reports whether metadata.finalizers has any.
func (d *document) hasFinalizers() bool {
	var all []string
	_ = json.Unmarshal(d.metadata["finalizers"], &all) // none if it is no list
	return len(all) > 0
}

// Render begins with metadata, which begins with the fields that identify the
// object.
func (d *document) Render(rv string) []byte {
	out := []byte(`{"metadata":{`)
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
