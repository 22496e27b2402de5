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
	members []namedNode[rowNode]
	each    *rowNode
	indexed []rowIndexed
	where   []rowWhere
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
	p := &Paths{rows: r}
	p.setKey("rows " + strings.Join(r.columns, ","))
	return p, nil
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
		if i := slices.IndexFunc(n.members, func(m namedNode[rowNode]) bool { return m.name == s.name }); i >= 0 {
			return n.members[i].node
		}
		n.members = append(n.members, namedNode[rowNode]{s.name, next})
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
