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

// projection returns what the paths show of an object, and where its RV stands in
// that. The cache has it as the latter, in 4 bytes, and the text.
func (e *Encoder) projection(paths *scan.Paths, o *scan.Object) (text string, rv int) {
	key := cacheKey{object: weak.Make(o), as: asProjection, fields: paths.String()}
	made, _ := e.Cache.getKey(key, o, func(o *scan.Object) (string, error) { // it has no errors
		text, rv := paths.Project(o)
		return string(binary.LittleEndian.AppendUint32(nil, uint32(rv))) + text, nil
	})
	return made[4:], int(binary.LittleEndian.Uint32([]byte(made[:4])))
}

// Unchanged reports whether two versions of an object look the same in the form,
// but for their RV. That is asked for projections only: otherwise they differ.
func (e *Encoder) Unchanged(f Form, a, b *scan.Object) bool {
	if f.Fields == nil {
		return false
	}
	textA, atA := e.projection(f.Fields, a)
	textB, atB := e.projection(f.Fields, b)
	return textA[:atA] == textB[:atB] &&
		textA[atA+len(kube.FormatRV(a.RV)):] == textB[atB+len(kube.FormatRV(b.RV)):]
}

// projections are made here, before they are copied to what they take.
var projections = sync.Pool{New: func() any { return new([]byte) }}

// listProjection appends what is shown of a list's items, with their kind and
// apiVersion, which the items of lists leave out otherwise. What the cache has no
// room for is made anew for each list: to enter it, and to have something else
// go for it, takes longer than that.
func (e *Encoder) listProjection(b *Body, paths *scan.Paths, items []*scan.Object) error {
	return encodeAll(b, items, func(b *Body, at int, run []*scan.Object) error {
		room := e.Cache.hasRoom()
		buf := projections.Get().(*[]byte)
		defer projections.Put(buf)
		out := (*buf)[:0]
		for i, o := range run {
			if at+i > 0 {
				out = append(out, ',')
			}
			if room {
				text, _ := e.projection(paths, o)
				out = append(out, text...)
			} else {
				out, _ = paths.Append(out, o)
			}
		}
		*buf = out
		b.add(string(out))
		return nil
	})
}
