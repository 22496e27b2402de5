// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strconv"
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
	for i := afterSpace(text, 1); text[i] != ']'; {
		end := afterValue(text, i)
		c.cells = append(c.cells, span{uint32(i), uint32(end)})
		i = afterComma(text, end)
	}
	dst = append(dst, '[')
	same, first := 0, true
	for k, cell := range c.cells {
		value := c.row[cell.from:cell.to]
		if k < len(c.before) && string(value) == string(c.last[c.before[k].from:c.before[k].to]) {
			same++
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = append(strconv.AppendInt(dst, int64(same), 10), ',')
		dst = append(dst, value...)
		same, first = 0, false
	}
	return append(dst, ']')
}
