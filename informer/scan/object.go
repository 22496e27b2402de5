// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// ErrNotObject marks JSON that is not a Kubernetes object: it has no
// metadata.name or no numeric metadata.resourceVersion.
var ErrNotObject = errors.New("not a Kubernetes object")

// A Label is one entry of metadata.labels.
type Label struct{ Key, Value string }

// Labels are an object's labels in the order of its JSON. They implement
// apimachinery's labels.Labels.
type Labels []Label

// Has reports whether there is such a label.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the label's value, "" if there is none.
func (l Labels) Get(key string) string {
	v, _ := l.Lookup(key)
	return v
}

// Lookup returns the label's value and whether there is one.
func (l Labels) Lookup(key string) (string, bool) {
	for _, x := range slices.Backward(l) { // of members of one name the last counts, as in encoding/json
		if x.Key == key {
			return x.Value, true
		}
	}
	return "", false
}

// An Object is one version of one object: its JSON as the API server sent it, and
// the attributes found in it. Objects are immutable and must not be copied. All
// strings except Columns are parts of one text.
type Object struct {
	Key        kube.Key
	UID        string
	RV         uint64
	APIVersion string
	Kind       string
	Labels     Labels
	// JSON is the object with its apiVersion and kind.
	JSON string
	// Row is the object's row in the API server's Table, without the object: its
	// other members, such as "cells":["a","1/1"]. Cells that depend on the time
	// are as of when the object was observed. "" if unknown.
	Row string
	// Columns are the columnDefinitions of Row, a JSON array.
	Columns string

	body   uint32 // where the members after a leading kind and apiVersion begin; 0 if these do not lead
	meta   span   // the value of metadata
	rvText span   // the digits of metadata.resourceVersion
	annots span   // the value of metadata.annotations
	// managed is the value of metadata.managedFields. No other attribute is in it.
	managed span

	cached atomic.Pointer[projection] // see [Paths.Append]
}

// WithRow returns a copy of the object with another row.
func (o *Object) WithRow(row, columns string) *Object {
	return &Object{
		Key: o.Key, UID: o.UID, RV: o.RV, APIVersion: o.APIVersion, Kind: o.Kind, Labels: o.Labels, JSON: o.JSON, Row: row, Columns: columns,
		body: o.body, meta: o.meta, rvText: o.rvText, annots: o.annots, managed: o.managed,
	}
}

var sumSeed = maphash.MakeSeed()

// Sum returns a hash of the object's JSON. It differs between processes.
func (o *Object) Sum() uint64 { return maphash.String(sumSeed, o.JSON) }

// ManagedFields returns metadata.managedFields as it is in the JSON, "" for none.
func (o *Object) ManagedFields() string { return o.managed.of(o.JSON) }

// A span is a part of a text.
type span struct{ from, to uint32 }

func (s span) of(text string) string { return text[s.from:s.to] }

// ParseObject parses an object. Errors wrap [ErrSyntax] or [ErrNotObject].
func ParseObject(text string) (*Object, error) {
	p := scanner{s: text}
	o, err := p.kubeObject()
	if err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return o, o.check()
}

// ParseStored parses an object whose text [ParseObject] has accepted before: it reads no
// further than the metadata, if apiVersion and kind precede it, as they do in what an API
// server writes.
func ParseStored(text string) (*Object, error) {
	p := scanner{s: text, stored: true}
	o, err := p.kubeObject()
	if err != nil {
		return nil, err
	}
	return o, o.check()
}

// ParseTemplate parses an object that may lack name and resourceVersion: the object
// of a bookmark, or [List.EmptyItem].
func ParseTemplate(text string) (*Object, error) {
	p := scanner{s: text}
	o, err := p.kubeObject()
	if err != nil {
		return nil, err
	}
	return o, p.end()
}

func (o *Object) check() error {
	if o.Key.Name() == "" || o.RV == 0 {
		return fmt.Errorf("%w: %s %q has no name or resourceVersion", ErrNotObject, o.Kind, o.Key)
	}
	if len(o.Key) > maxKey {
		return fmt.Errorf("%w: a name and namespace of %d bytes", ErrNotObject, len(o.Key))
	}
	return nil
}

// kubeObject consumes a Kubernetes object. Offsets in the result are from its brace.
func (p *scanner) kubeObject() (*Object, error) {
	p.space()
	start := p.i
	o := &Object{}
	n := 0 // members consumed
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		n++
		switch name {
		case "kind":
			o.Kind, err = p.textOrNull()
		case "apiVersion":
			o.APIVersion, err = p.textOrNull()
			// The typed form, {"kind":…,"apiVersion":…,…}.
			if n == 2 && o.Kind != "" && p.at(',') {
				o.body = uint32(p.i + 1 - start)
			}
		case "metadata":
			from := p.i
			o.Key, o.UID, o.RV, o.Labels, o.rvText, o.annots, o.managed = "", "", 0, nil, span{}, span{}, span{}
			if p.at('{') {
				err = p.metadata(o, start)
			} else {
				err = p.skip()
			}
			o.meta = span{uint32(from - start), uint32(p.i - start)}
			if p.stored && err == nil && o.Kind != "" && o.APIVersion != "" {
				o.JSON = p.s[start:]
				return o, nil
			}
		default:
			if t := p.table; t != nil && isTable(o.Kind, o.APIVersion) {
				p.table = nil // rows have no Tables as objects
				err = t.member(p, name)
				p.table = t
			} else {
				err = p.skip()
			}
		}
		if err != nil {
			return nil, err
		}
	}
	o.JSON = p.s[start:p.i]
	return o, nil
}

func (p *scanner) metadata(o *Object, start int) error {
	var namespace, name string
	for first := true; ; first = false {
		member, ok, err := p.member(first)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch member {
		case "name":
			name, err = p.textOrNull()
		case "namespace":
			namespace, err = p.textOrNull()
		case "uid":
			o.UID, err = p.textOrNull()
		case "resourceVersion":
			var digits string // with an escape, which ParseRV refuses
			if digits, err = p.rawOrNull(); err == nil {
				end := p.i - 1 // before the quote
				o.rvText = span{uint32(end - len(digits) - start), uint32(end - start)}
				if o.RV, err = kube.ParseRV(digits); err != nil {
					err = fmt.Errorf("%w: %w", ErrNotObject, err)
				}
			}
		case "labels":
			if o.Labels = nil; p.at('{') {
				o.Labels, err = p.labels()
			} else {
				err = p.skip()
			}
		case "annotations":
			from := p.i
			err = p.skip()
			o.annots = span{uint32(from - start), uint32(p.i - start)}
		case "managedFields":
			from := p.i
			err = p.skip()
			o.managed = span{uint32(from - start), uint32(p.i - start)}
		default:
			err = p.skip()
		}
		if err != nil {
			return err
		}
	}
	o.Key = kube.MakeKey(namespace, name)
	return nil
}

func (p *scanner) labels() (Labels, error) {
	var few [16]Label // of the stack; the result is cloned at its exact size
	all := Labels(few[:0])
	for first := true; ; first = false {
		key, ok, err := p.member(first)
		if err != nil || !ok {
			return slices.Clone(all), err
		}
		value, err := p.textOrNull()
		if err != nil {
			return nil, err
		}
		all = append(all, Label{key, value})
	}
}

// Typed reports whether the object is in the form of the API server's own types:
// kind and apiVersion come first, and items of lists omit them. Custom resources
// have all members in alphabetical order.
func (o *Object) Typed() bool { return o.body > 0 }

// ListItem returns the object as an item of a list, in two parts.
func (o *Object) ListItem() (brace, rest string) {
	if !o.Typed() {
		return "", o.JSON
	}
	return "{", o.JSON[o.body:]
}

// At returns the object with another resourceVersion. A DELETED event has the last
// state at the RV of the deletion.
func (o *Object) At(rv uint64) *Object {
	if o.RV == rv {
		return o
	}
	b := make([]byte, 0, len(o.JSON)+4)
	b = append(b, o.JSON[:o.rvText.from]...)
	b = strconv.AppendUint(b, rv, 10)
	p := scanner{s: string(append(b, o.JSON[o.rvText.to:]...))}
	at, err := p.kubeObject()
	if err != nil {
		panic(err) // a valid text, in which digits replace digits
	}
	at.Row, at.Columns = o.Row, o.Columns
	return at
}

// Metadata returns the JSON of the object's metadata, and the text before and after
// it.
func (o *Object) Metadata() (before, metadata, after string) {
	return o.JSON[:o.meta.from], o.meta.of(o.JSON), o.JSON[o.meta.to:]
}

// Annotations returns the JSON of metadata.annotations, "" if there are none.
func (o *Object) Annotations() string { return o.annots.of(o.JSON) }
