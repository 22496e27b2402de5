// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// tableEncoder encodes Tables in JSON. Rows hold objects, their metadata, or only
// cells.
//
//	list:   {"kind":"Table",…,"metadata":{…},"columnDefinitions":[…],"rows":[row…]}
//	event:  {"type":…,"object":{"kind":"Table",…,"rows":[row]}}, with columns in the first
//	row:    {"cells":[…],"object":{…}}
type tableEncoder struct {
	of      *jsonEncoder
	objects bool // in the rows
	columns []byte
}

func newTableEncoder(of *jsonEncoder, objects bool) *tableEncoder {
	return &tableEncoder{of: of, objects: objects, columns: mustMarshal(of.c.columns())}
}

// tableFormat returns the format for a value of includeObject.
func tableFormat(include string) Format {
	switch include {
	case "Object":
		return Table
	case "None":
		return TableBare
	}
	return TableMetadata
}

func (f *tableEncoder) contentType(bool) string { return runtime.ContentTypeJSON }

// encode returns a row without its braces.
func (f *tableEncoder) encode(o *object, rv string) ([]byte, error) {
	typed, err := o.typed(f.of.c, rv)
	if err != nil {
		return nil, err
	}
	cells := f.of.c.cells(typed)
	if f.objects && !f.of.metadata && o.document != nil {
		return appendRow(nil, cells, o.whole(f.of.c, rv)), nil
	}
	return f.appendRow(nil, cells, typed), nil
}

func (f *tableEncoder) appendRow(dst []byte, cells []any, o runtime.Object) []byte {
	switch {
	case !f.objects:
		return appendRow(dst, cells, []byte("null"))
	case f.of.metadata:
		o = metadataOf(o)
	}
	return appendRow(dst, cells, mustMarshal(o))
}

func appendRow(dst []byte, cells []any, object []byte) []byte {
	return fmt.Appendf(dst, `"cells":%s,"object":%s`, mustMarshal(cells), object)
}

func (f *tableEncoder) itemSize(*encoded) int { return 0 }

func (f *tableEncoder) appendItem(dst []byte, e *encoded, rv uint64, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return append(e.appendTo(append(dst, '{'), rv), '}')
}

func (f *tableEncoder) appendListHead(dst []byte, meta metav1.ListMeta, _ int) []byte {
	return fmt.Appendf(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":%s,"columnDefinitions":%s,"rows":[`, mustMarshal(meta), f.columns)
}

func (f *tableEncoder) appendListTail(dst []byte) []byte { return append(dst, "]}\n"...) }

func (f *tableEncoder) appendObject(dst []byte, e *encoded, rv uint64) []byte {
	dst = f.appendListHead(dst, metav1.ListMeta{ResourceVersion: strconv.FormatUint(rv, 10)}, 0)
	return f.appendListTail(f.appendItem(dst, e, rv, true))
}

func (f *tableEncoder) appendEvent(dst []byte, typ string, e *encoded, rv uint64, first bool) []byte {
	return append(e.appendTo(f.appendEventHead(dst, typ, rv, first), rv), "}]}}\n"...)
}

// appendEventHead appends the bytes before the members of the one row.
func (f *tableEncoder) appendEventHead(dst []byte, typ string, rv uint64, first bool) []byte {
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

// appendOther puts the object of a bookmark into a row, and leaves a Status as it is.
func (f *tableEncoder) appendOther(dst []byte, typ string, o runtime.Object, first bool) ([]byte, error) {
	if _, ok := o.(*metav1.Status); ok {
		return f.of.appendOther(dst, typ, o, first)
	}
	rv, err := strconv.ParseUint(accessor(o).GetResourceVersion(), 10, 64)
	if err != nil {
		return dst, err
	}
	dst = f.appendEventHead(dst, typ, rv, first)
	return append(f.appendRow(dst, f.of.c.cells(o), o), "}]}}\n"...), nil
}

func (f *tableEncoder) bookmark(rv uint64, annotations map[string]string) runtime.Object {
	return emptyObject(f.of.c.Resource, rv, annotations)
}
