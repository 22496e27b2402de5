// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"strings"
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// ErrBareTable marks a Table whose rows have no objects, though the request had
// includeObject=Object.
var ErrBareTable = errors.New("a Table without objects")

// A table holds the columns and objects of a Table (includeObject=Object). Each
// object has its row.
type table struct {
	columns string // the value of columnDefinitions, "" for null
	objects []*Object
}

// isTable reports whether kind and apiVersion are those of a Table. A custom
// resource of another group may have that kind.
func isTable(kind, apiVersion string) bool {
	return kind == "Table" && strings.HasPrefix(apiVersion, "meta.k8s.io/")
}

// member consumes a member that objects do not have.
func (t *table) member(p *scanner, name string) error {
	from := p.i
	switch name {
	case "columnDefinitions":
		if t.columns = ""; !p.at('[') {
			break
		}
		err := p.skip()
		t.columns = p.s[from:p.i]
		return err
	case "rows":
		if t.objects = nil; !p.at('[') {
			break
		}
		for first := true; ; first = false {
			ok, err := p.element(first)
			if err != nil || !ok {
				return err
			}
			o, err := p.row()
			if err != nil {
				return err
			}
			t.objects = append(t.objects, o)
		}
	}
	return p.skip()
}

// row consumes one row, {"cells":[…],"object":{…}}.
func (p *scanner) row() (*Object, error) {
	p.space()
	from := p.i + 1
	var o *Object
	var row string
	for first := true; ; first = false {
		before := p.i
		name, ok, err := p.member(first)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		row = "" // a member after the object makes the row unknown
		if name == "object" {
			o = nil
		}
		if name == "object" && p.at('{') {
			if !first {
				row = p.s[from:before]
			}
			o, err = p.kubeObject()
		} else {
			err = p.skip()
		}
		if err != nil {
			return nil, err
		}
	}
	if o == nil || o.Kind == "PartialObjectMetadata" && strings.HasPrefix(o.APIVersion, "meta.k8s.io/") {
		return nil, ErrBareTable
	}
	o.Row = row
	return o, nil
}

// Cells appends the cells of the object's row to cells, each as JSON. rest is the
// row's members after them, with the comma before.
func (o *Object) Cells(cells []string) (all []string, rest string, err error) {
	const name = `"cells":`
	if !strings.HasPrefix(o.Row, name) {
		return cells, "", ErrNotObject
	}
	p := scanner{s: o.Row, i: len(name)}
	for first := true; ; first = false {
		ok, err := p.element(first)
		if err != nil {
			return cells, "", err
		}
		if !ok {
			return cells, p.s[p.i:], nil
		}
		p.space()
		from := p.i
		if err := p.skip(); err != nil {
			return cells, "", err
		}
		cells = append(cells, p.s[from:p.i])
	}
}

// detach gives the object a copy of its text, without the text around it, and columns.
func (o *Object) detach(columns string) {
	var b strings.Builder // o.JSON+o.Row is no copy if one is empty
	b.Grow(len(o.JSON) + len(o.Row))
	b.WriteString(o.JSON)
	b.WriteString(o.Row)
	from, text := o.JSON, b.String()
	to := text[:len(from)]
	o.JSON, o.Row, o.Columns = to, text[len(from):], columns
	o.Key = kube.Key(moved(string(o.Key), from, to))
	for _, s := range []*string{&o.UID, &o.APIVersion, &o.Kind} {
		*s = moved(*s, from, to)
	}
	for i := range o.Labels {
		l := &o.Labels[i]
		l.Key, l.Value = moved(l.Key, from, to), moved(l.Value, from, to)
	}
}

// moved returns a part of from as the part of to at the same place. A string that is no
// part of from, such as one that had an escape, stays as it is.
func moved(s, from, to string) string {
	if s == "" {
		return "" // which may refer to any text
	}
	at := uintptr(unsafe.Pointer(unsafe.StringData(s))) - uintptr(unsafe.Pointer(unsafe.StringData(from)))
	if at >= uintptr(len(from)) { // also if s is before from
		return s
	}
	return to[at : at+uintptr(len(s))]
}
