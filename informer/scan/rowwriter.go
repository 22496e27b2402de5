// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"slices"
	"strings"
	"unsafe"
)

// A rowWriter collects the cells of a row from the text of an object, which is known to
// be valid.
type rowWriter struct {
	s       string
	managed span      // of managedFields
	cells   [][]byte  // by slot
	begin   []int     // where the value of the current element begins in the cell
	outer   []int     // values of begin for the arrays around the current one
	orders  [][]known // the members of the objects at each node, in their order
	other   known     // a member that is not among them
}

// value consumes a value, writes the cells of a node, and returns the index after it.
func (w *rowWriter) value(n *rowNode, i int) (end int) {
	if n.slot >= 0 {
		end = afterValue(w.s, i)
		w.cells[n.slot] = append(w.cells[n.slot][:w.begin[n.slot]], w.s[i:end]...)
		if n.hi == n.lo+1 {
			return end
		}
	}
	switch c := w.s[i]; {
	case c == '{' && len(n.members) > 0:
		return w.object(n, i)
	case c == '[' && (n.each != nil || len(n.indexed)+len(n.where) > 0):
		return w.array(n, i)
	}
	return afterValue(w.s, i)
}

func (w *rowWriter) object(n *rowNode, i int) (end int) {
	s, expected := w.s, 0
	for i = afterSpace(s, i+1); s[i] != '}'; {
		var m *known
		switch m, i = w.member(n, i, &expected); {
		case m.node != nil:
			i = w.value(m.node, i)
		case i == int(w.managed.from):
			i = int(w.managed.to)
		default:
			i = m.skip(s, i)
		}
		i = afterComma(s, i)
	}
	return i + 1
}

func (w *rowWriter) array(n *rowNode, i int) (end int) {
	s := w.s
	lo, hi := 0, 0
	if n.each != nil {
		lo, hi = n.each.lo, n.each.hi
	}
	w.outer = append(w.outer, w.begin[lo:hi]...)
	for slot := lo; slot < hi; slot++ {
		w.cells[slot] = append(w.cells[slot][:w.begin[slot]], '[')
	}
	var met uint64 // conditions that an element has met
	element := 0
	for i = afterSpace(s, i+1); s[i] != ']'; element++ {
		end := 0
		for slot := lo; slot < hi; slot++ {
			if element > 0 {
				w.cells[slot] = append(w.cells[slot], ',')
			}
			w.begin[slot] = len(w.cells[slot])
		}
		if n.each != nil {
			end = w.value(n.each, i)
		}
		for slot := lo; slot < hi; slot++ {
			if len(w.cells[slot]) == w.begin[slot] {
				w.cells[slot] = append(w.cells[slot], "null"...)
			}
		}
		for _, x := range n.indexed {
			if x.index == element {
				end = w.value(x.node, i)
			}
		}
		for k := range n.where {
			x := &n.where[k]
			if of := x.find(s, i); of >= 0 && met&(1<<(x.bit+of)) == 0 {
				met |= 1 << (x.bit + of)
				end = w.value(x.nodes[of], i)
			}
		}
		if end == 0 {
			end = afterValue(s, i)
		}
		i = afterComma(s, end)
	}
	for slot := lo; slot < hi; slot++ {
		w.cells[slot] = append(w.cells[slot], ']')
	}
	copy(w.begin[lo:hi], w.outer[len(w.outer)-(hi-lo):])
	w.outer = w.outer[:len(w.outer)-(hi-lo)]
	return i + 1
}

// find returns which of the values the member of the object at i has, -1 for none.
func (x *rowWhere) find(s string, i int) int {
	if s[i] != '{' {
		return -1
	}
	for i = afterSpace(s, i+1); s[i] != '}'; {
		from, to := i, afterString(s, i)
		i = afterSpace(s, afterSpace(s, to)+1)
		if unquoted(s[from:to]) == x.name {
			if s[i] != '"' {
				return -1
			}
			return slices.Index(x.values, unquoted(s[i:afterString(s, i)]))
		}
		i = afterComma(s, afterValue(s, i))
	}
	return -1
}

// What follows reads objects that are like the one before, as most are in a list: their
// members have the same names in the same order, and those that are not needed differ only
// in times and hashes of the same length. To compare is faster than to scan.

// A known is a member that objects had before.
type known struct {
	name  string   // of a member, with its quotes and the colon
	node  *rowNode // nil if the member is not needed
	value []byte   // then its last one, if that is kept
}

const (
	// maxKnown is how many members of the objects at a path are known, and maxAbsent how
	// many of them in a row an object may lack: there is no end of labels, for example.
	maxKnown, maxAbsent = 32, 8
	// Values outside these lengths are not kept.
	minAlike, maxAlike = 24, 8 << 10
)

// member returns the member at i of an object, and the index of its value. at is the
// member that is expected in the order, and becomes that after it.
func (w *rowWriter) member(n *rowNode, i int, at *int) (m *known, value int) {
	s, order := w.s, w.orders[n.id]
	for k := *at; k < min(len(order), *at+maxAbsent); k++ {
		if m := &order[k]; strings.HasPrefix(s[i:], m.name) {
			*at = k + 1
			return m, afterSpace(s, i+len(m.name))
		}
	}
	to := afterString(s, i)
	colon := afterSpace(s, to)
	m = &w.other
	m.node = findMember(n.members, s[i:to])
	if len(order) < maxKnown {
		order = slices.Insert(order, *at, known{name: strings.Clone(s[i : colon+1]), node: m.node})
		w.orders[n.id], m = order, &order[*at]
		*at++
	}
	return m, afterSpace(s, colon+1)
}

// skip returns the index after the value at i, which is not needed.
func (m *known) skip(s string, i int) (end int) {
	if len(m.value) > 0 && sameShape(m.value, s[i:]) {
		return i + len(m.value)
	}
	end = afterValue(s, i)
	if n := end - i; m.name != "" && minAlike <= n && n <= maxAlike && (s[i] == '{' || s[i] == '[') {
		m.value = append(m.value[:0], s[i:end]...)
	}
	return end
}

// sameShape reports whether a text begins with a value that ends where a known one does:
// the quotes, backslashes and brackets of both, which decide where a value ends, are at
// the same places. It may be false if they are.
func sameShape(value []byte, text string) bool {
	if len(text) < len(value) {
		return false
	}
	b := unsafe.Slice(unsafe.StringData(text), len(value))
	i := 0
	for ; i+8 <= len(value); i += 8 {
		v, t := binary.LittleEndian.Uint64(value[i:]), binary.LittleEndian.Uint64(b[i:])
		if v != t && (shape(v)|shape(t))&differing(v, t) != 0 {
			return false
		}
	}
	for ; i < len(value); i++ {
		if value[i] != b[i] && (isShape(value[i]) || isShape(b[i])) {
			return false
		}
	}
	return true
}

// shape has the highest bit of each byte of w that is a quote, a backslash or a bracket;
// that of another byte may be set, too.
func shape(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	bracket := w | ones*0x20 // '[' and ']' become '{' and '}'
	opening, closing := bracket^ones*'{', bracket^ones*'}'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (opening-ones)&^opening | (closing-ones)&^closing) & high
}

// differing has the highest bit of each byte in which v and w differ.
func differing(v, w uint64) uint64 {
	const low = 0x7f7f7f7f7f7f7f7f
	x := v ^ w
	return (x&low + low | x) &^ low
}

func isShape(c byte) bool {
	switch c {
	case '"', '\\', '{', '}', '[', ']':
		return true
	}
	return false
}
