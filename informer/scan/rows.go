// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"
	"strings"
	"sync"
)

// rowColumns are the first columns of every row.
var rowColumns = []string{"metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion"}

// rowRV is the column of the RV.
const rowRV = 3

// rowPaths are the columns of rows. Each column has a slot, and the slots below a node
// of the tree are neighbors.
type rowPaths struct {
	columns []string
	slots   []int // of the columns
	root    *rowNode
	pool    sync.Pool // of *rowWriter
}

// A rowNode is a value in an object, which a row has, or of which it has parts.
type rowNode struct {
	id      int // the nodes of a tree are counted from 0
	slot    int // of its value; -1 for none
	lo, hi  int // the slots of the node and of what is below it: lo <= slot < hi
	members []rowMember
	each    *rowNode
	indexed []rowIndexed
	where   []rowWhere
}

type rowMember struct {
	name string
	node *rowNode
}

type rowIndexed struct {
	index int
	node  *rowNode
}

// A rowWhere selects elements by the values of one member.
type rowWhere struct {
	name   string
	values []string
	nodes  []*rowNode // by value
	bit    int        // of the first value among those of the array, in a set of those that were met
}

// ParseRows parses paths, as [ParsePaths] does, of a projection that is a row: a JSON
// array with a value for each column. The columns are metadata.namespace, .name, .uid and
// .resourceVersion, and then the paths in their order. The value of a path that leads
// through [*] is an array with a value for each element. A value that does not exist is
// null. In addition, a path may select one element of an array: [0], or
// [?(@.type=="Ready")], the first one whose member has this value.
//
// Errors wrap [ErrPath].
func ParseRows(text string) (*Paths, error) {
	parsed, err := parsePaths(text)
	if err != nil {
		return nil, err
	}
	first, err := parsePaths(strings.Join(rowColumns, ","))
	if err != nil {
		return nil, err
	}
	r := &rowPaths{root: &rowNode{slot: -1}}
	var ends []*rowNode
	for _, path := range append(first, parsed...) {
		n := r.root
		for _, s := range path.steps {
			n = n.child(s)
		}
		n.slot = 0 // has one
		ends = append(ends, n)
		r.columns = append(r.columns, path.text)
	}
	nodes := 0
	slots := r.root.number(0, &nodes)
	for _, n := range ends {
		r.slots = append(r.slots, n.slot)
	}
	r.pool.New = func() any {
		return &rowWriter{cells: make([][]byte, slots), begin: make([]int, slots), orders: make([][]known, nodes)}
	}
	return &Paths{rows: r, key: digest("rows " + strings.Join(r.columns, ","))}, nil
}

// Columns returns the columns of a projection that is a row, nil for one that is an object,
// and for no projection.
func (p *Paths) Columns() []string {
	if p == nil || p.rows == nil {
		return nil
	}
	return p.rows.columns
}

// AppendRow appends the row of an object whose JSON is valid; p has columns.
func (p *Paths) AppendRow(dst []byte, json string) []byte {
	dst, _ = p.rows.append(dst, json, span{})
	return dst
}

// child returns the node that a step leads to.
func (n *rowNode) child(s step) *rowNode {
	next := &rowNode{slot: -1}
	switch s.kind {
	case stepMember:
		if i := slices.IndexFunc(n.members, func(m rowMember) bool { return m.name == s.name }); i >= 0 {
			return n.members[i].node
		}
		n.members = append(n.members, rowMember{s.name, next})
	case stepEach:
		if n.each == nil {
			n.each = next
		}
		return n.each
	case stepIndex:
		if i := slices.IndexFunc(n.indexed, func(x rowIndexed) bool { return x.index == s.index }); i >= 0 {
			return n.indexed[i].node
		}
		n.indexed = append(n.indexed, rowIndexed{s.index, next})
	case stepWhere:
		i := slices.IndexFunc(n.where, func(x rowWhere) bool { return x.name == s.name })
		if i < 0 {
			i = len(n.where)
			n.where = append(n.where, rowWhere{name: s.name})
		}
		x := &n.where[i]
		if k := slices.Index(x.values, s.value); k >= 0 {
			return x.nodes[k]
		}
		x.values, x.nodes = append(x.values, s.value), append(x.nodes, next)
	}
	return next
}

// number gives slots and IDs to the nodes from n on, and returns the next free slot.
func (n *rowNode) number(slot int, id *int) int {
	n.id, n.lo = *id, slot
	*id++
	if n.slot >= 0 {
		n.slot = slot
		slot++
	}
	for _, m := range n.members {
		slot = m.node.number(slot, id)
	}
	if n.each != nil {
		slot = n.each.number(slot, id)
	}
	for _, x := range n.indexed {
		slot = x.node.number(slot, id)
	}
	bit := 0
	for i := range n.where {
		n.where[i].bit = bit
		for _, node := range n.where[i].nodes {
			slot = node.number(slot, id)
			bit++
		}
	}
	n.hi = slot
	return slot
}

// append appends the row of an object; rv is the offset of its RV, relative to the start.
// managed is where its managedFields are, often half of the text; zero if that is not known.
func (r *rowPaths) append(dst []byte, json string, managed span) (out []byte, rv int) {
	w := r.pool.Get().(*rowWriter)
	defer r.pool.Put(w)
	w.s, w.managed = json, managed
	for i := range w.cells {
		w.cells[i] = w.cells[i][:0]
	}
	w.value(r.root, afterSpace(json, 0))
	w.s = ""
	start := len(dst)
	dst = append(dst, '[')
	for column, slot := range r.slots {
		if column > 0 {
			dst = append(dst, ',')
		}
		if column == rowRV {
			rv = len(dst) + 1 - start // after the quote
		}
		if cell := w.cells[slot]; len(cell) > 0 {
			dst = append(dst, cell...)
		} else {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, ']'), rv
}

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

// find returns the node of the member with a name, given in quotes; nil if there is none.
func (n *rowNode) find(quoted string) *rowNode {
	name := unquoted(quoted)
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].node
		}
	}
	return nil
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
