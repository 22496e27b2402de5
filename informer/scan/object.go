// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// ErrNotObject marks JSON that is not a Kubernetes object: it has no
// metadata.name or no numeric metadata.resourceVersion.
var ErrNotObject = errors.New("not a Kubernetes object")

// A Label is one entry of metadata.labels.
type Label struct{ Key, Value string }

// Labels are an object's labels in the order of its JSON. They satisfy
// apimachinery's labels.Labels.
type Labels []Label

// Has reports whether the label is there.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the label's value, "" if it is not there.
func (l Labels) Get(key string) string {
	v, _ := l.Lookup(key)
	return v
}

// Lookup returns the label's value and whether it is there.
func (l Labels) Lookup(key string) (string, bool) {
	for _, x := range slices.Backward(l) { // of several the last one counts, as everywhere in JSON
		if x.Key == key {
			return x.Value, true
		}
	}
	return "", false
}

// An Object is one version of one object: its JSON as the API server sent it
// and what the scan found in it. Objects are immutable; all strings but
// Columns are parts of one text.
type Object struct {
	Key        kube.Key
	UID        string
	RV         uint64
	APIVersion string
	Kind       string
	Labels     Labels
	// JSON is the object with its apiVersion and kind.
	JSON string
	// Row is how the API server prints the object in a Table: the members of
	// its row but the object, such as "cells":["a","1/1"]. What depends on the
	// clock is as of when it was observed. "" if it is not known.
	Row string
	// Columns are the columnDefinitions, a JSON array, that Row is under.
	Columns string

	body   uint32 // where the members after a leading kind and apiVersion begin; 0 if they do not lead
	meta   span   // the value of metadata
	rvText span   // the digits of metadata.resourceVersion
	annots span   // the value of metadata.annotations
}

type span struct{ from, to uint32 }

func (s span) of(text string) string { return text[s.from:s.to] }

// ParseObject reads one object from its JSON. Errors wrap [ErrSyntax] or
// [ErrNotObject].
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

// ParseTemplate reads what may have neither a name nor a resourceVersion: the object
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
	return nil
}

// kubeObject consumes an object. Offsets in the result count from its brace.
func (p *scanner) kubeObject() (*Object, error) {
	p.space()
	start := p.i
	o := &Object{}
	n := 0 // members seen
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
			// The typed form, {"kind":…,"apiVersion":…,…, whose list
			// items leave these two out.
			if n == 2 && o.Kind != "" && p.at(',') {
				o.body = uint32(p.i + 1 - start)
			}
		case "metadata":
			from := p.i
			o.Key, o.UID, o.RV, o.Labels, o.rvText, o.annots = "", "", 0, nil, span{}, span{}
			if p.at('{') {
				err = p.metadata(o, start)
			} else {
				err = p.skip()
			}
			o.meta = span{uint32(from - start), uint32(p.i - start)}
		default:
			if t := p.table; t != nil && isTable(o.Kind, o.APIVersion) {
				p.table = nil // its rows hold no Tables
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
			var digits string // an escape among them fails to parse
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
	var few [16]Label // so that what is kept is no larger than it needs to be
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

// Typed reports whether the object is in the form of the API server's own
// types, whose list items leave out kind and apiVersion; custom resources are
// in the other.
func (o *Object) Typed() bool { return o.body > 0 }

// ListItem returns the object as it stands in a list, in two parts.
func (o *Object) ListItem() (brace, rest string) {
	if !o.Typed() {
		return "", o.JSON
	}
	return "{", o.JSON[o.body:]
}

// At returns the object with another resourceVersion: a DELETED event carries
// the last state at the RV that ended it.
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
		panic(err) // it was scanned before, and digits are for digits
	}
	at.Row, at.Columns = o.Row, o.Columns
	return at
}

// Metadata returns the JSON of the object's metadata with what stands before
// and after it.
func (o *Object) Metadata() (before, metadata, after string) {
	return o.JSON[:o.meta.from], o.meta.of(o.JSON), o.JSON[o.meta.to:]
}

// Annotations returns the JSON of metadata.annotations, "" if there are none.
func (o *Object) Annotations() string { return o.annots.of(o.JSON) }
