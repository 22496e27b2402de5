// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// A table is the columns of a Table, and what they say of an object. An object has its Go
// type if client-go's scheme has one, and is unstructured otherwise.
type table struct {
	columns []metav1.TableColumnDefinition
	cells   func(runtime.Object) []any
}

// nameTable has only the name.
var nameTable = table{
	columns: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}},
	cells:   func(o runtime.Object) []any { return []any{accessor(o).GetName()} },
}

// A tableFormat is Tables in JSON. Rows hold objects, their metadata, or only cells.
//
//	list:   {"kind":"Table",…,"metadata":{…},"columnDefinitions":[…],"rows":[row…]}
//	event:  {"type":…,"object":{"kind":"Table",…,"rows":[row]}}, with columns in the first
//	row:    {"cells":[…],"object":{…}}
type tableFormat struct {
	*jsonFormat
	form    Format // Table, TableMetadata or TableBare
	columns []byte
	cells   func(runtime.Object) []any
}

func newTableFormat(of *jsonFormat, t table, form Format) *tableFormat {
	return &tableFormat{of, form, mustMarshal(t.columns), t.cells}
}

// tableFormatOf returns the format for a value of includeObject.
func tableFormatOf(include string) Format {
	switch include {
	case "Object":
		return Table
	case "None":
		return TableBare
	}
	return TableMetadata
}

// Encode returns a row without its braces.
func (f *tableFormat) Encode(o *informertest.Object, rv string) (*informertest.Encoded, error) {
	out, err := typed(o, f.of, rv)
	if err != nil {
		return nil, err
	}
	cells := f.cells(out)
	if _, made := o.Content.(maker); f.form == Table && !made {
		return encoded(o, f.form, appendRow(nil, cells, o.JSON(rv))), nil
	}
	return encoded(o, f.form, f.appendRow(nil, cells, out)), nil
}

func (f *tableFormat) appendRow(dst []byte, cells []any, o runtime.Object) []byte {
	switch f.form {
	case TableBare:
		return appendRow(dst, cells, []byte("null"))
	case TableMetadata:
		o = metadataOf(o)
	}
	return appendRow(dst, cells, mustMarshal(o))
}

func appendRow(dst []byte, cells []any, object []byte) []byte {
	return fmt.Appendf(dst, `"cells":%s,"object":%s`, mustMarshal(cells), object)
}

// AppendItem implements informertest.Format, as the methods below do.
func (f *tableFormat) AppendItem(dst []byte, e *informertest.Encoded, rv uint64, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return append(e.AppendTo(append(dst, '{'), rv), '}')
}

// AppendListHead appends the columns too.
func (f *tableFormat) AppendListHead(dst []byte, meta informertest.ListMeta, _ int) []byte {
	return fmt.Appendf(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":%s,"columnDefinitions":%s,"rows":[`, mustMarshal(meta), f.columns)
}

// AppendObject appends a Table with one row.
func (f *tableFormat) AppendObject(dst []byte, e *informertest.Encoded, rv uint64) []byte {
	dst = f.AppendListHead(dst, informertest.ListMeta{ResourceVersion: strconv.FormatUint(rv, 10)}, 0)
	return f.AppendListTail(f.AppendItem(dst, e, rv, true))
}

// AppendEvent appends a line.
func (f *tableFormat) AppendEvent(dst []byte, typ string, e *informertest.Encoded, rv uint64, first bool) []byte {
	return append(e.AppendTo(f.appendEventHead(dst, typ, rv, first), rv), "}]}}\n"...)
}

// AppendBookmark puts the object of a bookmark into a row.
func (f *tableFormat) AppendBookmark(dst []byte, rv uint64, annotations map[string]string, first bool) ([]byte, error) {
	o := emptyObject(f.of, rv, annotations)
	dst = f.appendEventHead(dst, "BOOKMARK", rv, first)
	return append(f.appendRow(dst, f.cells(o), o), "}]}}\n"...), nil
}

// appendEventHead appends the bytes before the members of the one row.
func (f *tableFormat) appendEventHead(dst []byte, typ string, rv uint64, first bool) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, typ...)
	dst = append(dst, `","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`...)
	dst = strconv.AppendUint(dst, rv, 10)
	dst = append(dst, `"},"columnDefinitions":`...)
	if first {
		dst = append(dst, f.columns...)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, `,"rows":[{`...)
}
