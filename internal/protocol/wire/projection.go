// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"sync"
	"weak"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// projection returns the projection of an object and the offset of its RV in it.
// The cache entry is the offset, in 4 bytes, and the text.
func (e *Encoder) projection(paths *scan.Paths, o *scan.Object) (text string, rv int) {
	key := cacheKey{object: weak.Make(o), as: asProjection, fields: paths.Key()}
	entry, _ := e.Cache.getKey(key, o, func(o *scan.Object) (string, error) { // there are no errors
		text, rv := paths.Project(o)
		return string(binary.LittleEndian.AppendUint32(nil, uint32(rv))) + text, nil
	})
	return entry[4:], int(binary.LittleEndian.Uint32([]byte(entry[:4])))
}

// Unchanged reports whether the form is a projection in which two versions of an
// object differ in nothing but their RV.
func (e *Encoder) Unchanged(f Form, a, b *scan.Object) bool {
	if f.Fields == nil {
		return false
	}
	textA, atA := e.projection(f.Fields, a)
	textB, atB := e.projection(f.Fields, b)
	return textA[:atA] == textB[:atB] &&
		textA[atA+len(kube.FormatRV(a.RV)):] == textB[atB+len(kube.FormatRV(b.RV)):]
}

// projectionBuffers hold projections until their size is known.
var projectionBuffers = sync.Pool{New: func() any { return new([]byte) }}

// listRows appends a list of rows.
func (e *Encoder) listRows(b *Body, f Form, h ListHead, items []*scan.Object) error {
	b.add(`{"kind":"RowList","apiVersion":"watchkeeper/v1","metadata":`, marshal(h.meta()), `,"columns":`, marshal(f.Fields.Columns()))
	if f.Changes {
		b.add(`,"repeated":"omit"`)
	}
	b.add(`,"rows":[`)
	err := e.listProjection(b, f, items)
	b.add("]}")
	return err
}

// listProjection appends the projections of a list's items. Unlike other items of
// lists they have kind and apiVersion. They are not cached here: see [scan.Paths.Append].
func (e *Encoder) listProjection(b *Body, f Form, items []*scan.Object) error {
	return encodeAll(b, items, func(b *Body, at int, run []*scan.Object) error {
		buf := projectionBuffers.Get().(*[]byte)
		defer projectionBuffers.Put(buf)
		out := (*buf)[:0]
		var changes scan.RowChanges // the first row of each run is whole
		var row []byte
		for i, o := range run {
			if at+i > 0 {
				out = append(out, ',')
			}
			if f.Changes {
				row, _ = f.Fields.Append(row[:0], o)
				out = changes.Append(out, row)
			} else {
				out, _ = f.Fields.Append(out, o)
			}
		}
		*buf = out
		b.add(string(out))
		return nil
	})
}
