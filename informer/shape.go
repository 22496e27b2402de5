// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"unicode"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// shapeOf returns the names of the fields that encoding/json sets in a value of a type; nil if
// there are none.
func shapeOf(t reflect.Type) *scan.Shape { return shapes{}.of(t) }

// shapes are those of the types seen so far, which may refer to themselves.
type shapes map[reflect.Type]*scan.Shape

func (all shapes) of(t reflect.Type) *scan.Shape {
	// A limit, as there are pointers to themselves.
	for n := 0; t.Kind() == reflect.Pointer && !decodesItself(t) && n < 10; n++ {
		t = t.Elem()
	}
	if s, ok := all[t]; ok {
		return s
	}
	all[t] = nil
	if decodesItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		s := &scan.Shape{}
		all[t] = s
		for name, f := range fieldsOf(t) {
			s.Add(name, all.of(f))
		}
		return s
	case reflect.Map, reflect.Slice, reflect.Array:
		s := &scan.Shape{}
		all[t] = s // for a type that consists of itself
		if s.Each = all.of(t.Elem()); s.Each == nil {
			all[t] = nil
		}
	}
	return all[t]
}

// decodesItself reports whether encoding/json calls a method of a type.
func decodesItself(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t)
	}
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// A structField is a field of a struct, or of one that is embedded in it.
type structField struct {
	typ       reflect.Type
	depth     int
	tagged    bool // the name is that of a tag
	ambiguous bool // there is another one like it: neither is set
}

// fieldsOf returns the types of the fields of a struct, by their names in JSON, with the rules
// of encoding/json for those of embedded structs: of several fields with a name, the one at
// the least depth is set, at the same depth the one with a tag, and otherwise none.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	found := map[string]structField{}
	visited := map[reflect.Type]bool{}
	for depth, level := 0, []reflect.Type{t}; len(level) > 0; depth++ {
		var next []reflect.Type
		count := map[reflect.Type]int{}
		for _, t := range level {
			count[t]++
		}
		for _, t := range level {
			if visited[t] {
				continue
			}
			visited[t] = true
			for n := range t.NumField() {
				f := t.Field(n)
				typ, name := f.Type, jsonName(f)
				if typ.Kind() == reflect.Pointer && typ.Name() == "" {
					typ = typ.Elem()
				}
				isStruct := typ.Kind() == reflect.Struct
				switch {
				case !f.IsExported() && !(f.Anonymous && isStruct), f.Tag.Get("json") == "-":
				case name != "":
					add(found, name, structField{f.Type, depth, true, count[t] > 1})
				case f.Anonymous && isStruct:
					next = append(next, typ)
				default:
					add(found, f.Name, structField{f.Type, depth, false, count[t] > 1})
				}
			}
		}
		level = next
	}
	fields := map[string]reflect.Type{}
	for name, f := range found {
		if !f.ambiguous {
			fields[name] = f.typ
		}
	}
	return fields
}

// add adds a field, unless a field with its name hides it.
func add(found map[string]structField, name string, f structField) {
	is, ok := found[name]
	switch {
	case !ok, is.depth == f.depth && f.tagged && !is.tagged:
		found[name] = f
	case is.depth == f.depth && f.tagged == is.tagged:
		is.ambiguous = true
		found[name] = is
	}
}

// jsonName returns the name in a field's tag, "" if it has none that encoding/json accepts.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if strings.ContainsFunc(name, func(c rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}) {
		return ""
	}
	return name
}
