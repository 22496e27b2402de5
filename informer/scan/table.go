// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"strings"
)

// ErrBareTable marks a Table whose rows come without their objects, though
// these were asked for.
var ErrBareTable = errors.New("a Table without its objects")

// A table is what a Table of the API server holds, when its rows were asked
// for with their objects inside (includeObject=Object): the objects, and how
// the API server prints them.
type table struct {
	columns string // the value of columnDefinitions, "" for null
	objects []*Object
}

// isTable reports whether kind and apiVersion are those of a Table. A custom
// resource may have that kind, in its own group.
func isTable(kind, apiVersion string) bool {
	return kind == "Table" && strings.HasPrefix(apiVersion, "meta.k8s.io/")
}

// member consumes a member of a Table that is not any object's.
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
		row = "" // what is behind the object is not understood
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

// Cells returns the cells of the object's row, each as JSON, appended to cells,
// and the members of the row behind them, with the comma before.
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

// detached returns a copy of the object that does not keep alive what stands
// around it, printed under the columns.
func (o *Object) detached(columns string) (*Object, error) {
	text := o.JSON + o.Row
	n, err := ParseObject(text[:len(o.JSON)])
	if err != nil {
		return nil, err
	}
	n.Row, n.Columns = text[len(o.JSON):], columns
	return n, nil
}
