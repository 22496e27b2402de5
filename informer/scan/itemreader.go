// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	listBuffer = 64 << 10 // bytes of a list that are in memory to begin with
	// maxItem bounds one object of a list; etcd's own limit of a request is
	// 1.5 MiB by default.
	maxItem = 64 << 20
)

// An ItemReader reads a list's JSON item by item as it arrives, and holds no
// more of it than one item and what was read ahead.
//
//	for {
//		ok, err := r.Next(&item)
//		if err != nil || !ok {
//			return err
//		}
//		…
//	}
//	r.Head() // what the list said of itself
type ItemReader struct {
	in   io.Reader
	buf  []byte
	i, n int  // buf[i:n] has been read, and not been consumed
	eof  bool // there is no more to read
	at   position
	head string // what the list leaves out of its items
	list List
}

// A position is where in a list a reader is.
type position struct {
	depth int
	first bool // nothing of the object or array has been consumed
	items bool // in the array of items
	over  bool
	kind  bool // there was one
}

// NewItemReader reads the list from in. like tells what the collection's lists
// are: a list's items may stand before its kind.
func NewItemReader(in io.Reader, like *List) *ItemReader {
	list := List{Kind: like.Kind, APIVersion: like.APIVersion, ItemKind: like.ItemKind, Typed: like.Typed}
	return &ItemReader{in: in, buf: make([]byte, listBuffer), at: position{first: true}, head: like.itemHeader(), list: list}
}

// Head returns the list without its items; it is complete when they are through.
func (r *ItemReader) Head() *List { return &r.list }

// Next reads the next item. ok is false behind the last one, when all of the
// list has been read. Errors wrap [ErrSyntax] or [ErrNotObject], or are those
// of reading.
func (r *ItemReader) Next(it *Item) (ok bool, err error) {
	for !r.at.over {
		if ok, err = r.step(it); ok || err != nil {
			return ok, err
		}
	}
	if !r.at.kind || r.list.RV == 0 {
		return false, fmt.Errorf("%w: %q is not a list with a resourceVersion", ErrNotObject, r.list.Kind)
	}
	return false, nil
}

// step takes one step, with as much read ahead as that needs: one that comes to
// the end of what has been read is taken again, with more.
func (r *ItemReader) step(it *Item) (found bool, err error) {
	for {
		p := scanner{s: view(r.buf[r.i:r.n]), depth: r.at.depth, more: !r.eof}
		at, list := r.at, r.list
		found, err := r.advance(&p, it)
		r.at.depth = p.depth
		// What ends where the buffer does may go on, if only with a digit.
		if r.eof || err == nil && p.i < len(p.s) || err != nil && !errors.Is(err, errMore) {
			r.i += p.i
			return found, err
		}
		r.at, r.list = at, list
		if err := r.more(); err != nil {
			return false, err
		}
	}
}

// more reads on until the buffer, which grows if nothing of it has been
// consumed, is full or the list ends.
func (r *ItemReader) more() error {
	if r.i > 0 {
		r.i, r.n = 0, copy(r.buf, r.buf[r.i:r.n])
	}
	if r.n == len(r.buf) {
		if r.n >= maxItem {
			return fmt.Errorf("%w: an item of more than %d bytes", ErrSyntax, maxItem)
		}
		r.buf = append(r.buf, make([]byte, r.n)...)
	}
	for r.n < len(r.buf) {
		n, err := r.in.Read(r.buf[r.n:])
		r.n += n
		if errors.Is(err, io.EOF) {
			r.eof = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// advance consumes an item, or a member of the list that is not its items, or
// what begins or ends either.
func (r *ItemReader) advance(p *scanner, it *Item) (found bool, err error) {
	if r.at.items {
		ok, err := p.element(r.at.first)
		r.at.first = false
		if err != nil || !ok {
			r.at.items = false
			return false, err
		}
		if err := p.item(it); err != nil {
			return false, err
		}
		if strings.HasPrefix(it.raw, `{"metadata":`) {
			it.head = r.head
		}
		return true, it.check()
	}
	name, ok, err := p.member(r.at.first)
	r.at.first = false
	if err != nil {
		return false, err
	}
	if !ok {
		r.at.over = true
		if !r.eof {
			return false, errMore // up to the end
		}
		return false, p.end()
	}
	switch name {
	case "kind":
		var kind string
		kind, err = p.textOrNull()
		r.list.Kind, r.at.kind = strings.Clone(kind), kind != ""
	case "metadata":
		err = p.listMetadata(&r.list)
		r.list.Continue = strings.Clone(r.list.Continue)
	case "items":
		if p.at('[') {
			r.at.items, r.at.first = true, true
			// The bracket is there: the array is the next step.
			return false, nil
		}
		err = p.skip()
	default:
		err = p.skip()
	}
	return false, err
}
