// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strconv"
	"strings"
	"unsafe"
)

// A RowChanges writes rows as what differs from the row before: an array of pairs, of how
// many values are the same between the last difference and this one, and the value.
//
//	["a","Running","node-1"]     [0,"a",0,"Running",0,"node-1"]
//	["b","Running","node-1"]     [0,"b"]
//	["c","Running","node-2"]     [0,"c",1,"node-2"]
//
// The zero value is at the first row, which differs in every value.
type RowChanges struct {
	row, last     []byte
	cells, before []span // of them
}

// Append appends what a row differs in; it must be valid, as [Paths.AppendRow] writes it.
// The row may be changed afterwards.
func (c *RowChanges) Append(dst, row []byte) []byte {
	c.row, c.last = append(c.last[:0], row...), c.row
	c.cells, c.before = c.before[:0], c.cells
	text := unsafe.String(unsafe.SliceData(c.row), len(c.row))
	last := unsafe.String(unsafe.SliceData(c.last), len(c.last))
	dst = append(dst, '[')
	same, first := 0, true
	for i := 1; text[i] != ']'; {
		end := 0
		if k := len(c.cells); k < len(c.before) {
			if cell := last[c.before[k].from:c.before[k].to]; strings.HasPrefix(text[i:], cell) {
				end = i + len(cell)
			}
		}
		if end > 0 && (text[end] == ',' || text[end] == ']') { // it may be a longer number
			same++
		} else {
			end = afterValue(text, i)
			if !first {
				dst = append(dst, ',')
			}
			dst = append(strconv.AppendInt(dst, int64(same), 10), ',')
			dst = append(dst, text[i:end]...)
			same, first = 0, false
		}
		c.cells = append(c.cells, span{uint32(i), uint32(end)})
		i = afterComma(text, end)
	}
	return append(dst, ']')
}
