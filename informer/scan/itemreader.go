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
	listBuffer = 64 << 10 // initial size of a reader's buffer
	// maxItem bounds the bytes of one object of a list. etcd's default limit of
	// a request is 1.5 MiB.
	maxItem = 64 << 20
)

// An ItemReader reads a list in JSON item by item as it arrives. It holds one item
// and its read buffer.
//
//	for {
//		ok, err := r.Next(&item)
//		if err != nil || !ok {
//			return err
//		}
//		…
//	}
//	r.List() // the list's metadata
type ItemReader struct {
	in         io.Reader
	buf        []byte
	i, n       int  // buf[i:n] has been read and not consumed
	eof        bool // in has ended
	at         position
	itemHeader string // see List.itemHeader
	list       List
}

// A position is the state of a reader between two steps.
type position struct {
	depth   int
	first   bool // nothing of the object or array has been consumed
	inItems bool // in the array of items
	done    bool // the list has ended
	hasKind bool
}

// NewItemReader returns a reader of the list from in. like is a list of the
// collection with the kinds and form set: a list's kind may follow its items.
func NewItemReader(in io.Reader, like *List) *ItemReader {
	list := List{Kind: like.Kind, APIVersion: like.APIVersion, ItemKind: like.ItemKind, Typed: like.Typed}
	return &ItemReader{in: in, buf: make([]byte, listBuffer), at: position{first: true}, itemHeader: like.itemHeader(), list: list}
}

// List returns the list without its items. It is complete after the last item.
func (r *ItemReader) List() *List { return &r.list }

// Next reads the next item. ok is false after the last item, when the whole list
// has been read. Errors wrap [ErrSyntax] or [ErrNotObject], or are read errors.
func (r *ItemReader) Next(it *Item) (ok bool, err error) {
	for !r.at.done {
		if ok, err = r.step(it); ok || err != nil {
			return ok, err
		}
	}
	if !r.at.hasKind || r.list.RV == 0 {
		return false, notList(r.list.Kind)
	}
	return false, nil
}

// step calls advance on the buffer. If advance reaches the end of the buffer, step
// reads more and calls it again.
func (r *ItemReader) step(it *Item) (found bool, err error) {
	for {
		p := scanner{s: unsafeString(r.buf[r.i:r.n]), depth: r.at.depth, partial: !r.eof}
		at, list := r.at, r.list
		found, err := r.advance(&p, it)
		r.at.depth = p.depth
		// A token at the end of the buffer may continue, for example a number.
		if r.eof || err == nil && p.i < len(p.s) || err != nil && !errors.Is(err, errNeedMore) {
			r.i += p.i
			return found, err
		}
		r.at, r.list = at, list
		if err := r.more(); err != nil {
			return false, err
		}
	}
}

// more fills the buffer, which it grows if nothing of it has been consumed.
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

// advance consumes one item, or one member of the list other than its items, or the
// beginning or end of the list or of its items.
func (r *ItemReader) advance(p *scanner, it *Item) (found bool, err error) {
	if r.at.inItems {
		ok, err := p.element(r.at.first)
		r.at.first = false
		if err != nil || !ok {
			r.at.inItems = false
			return false, err
		}
		if err := p.item(it); err != nil {
			return false, err
		}
		if strings.HasPrefix(it.raw, `{"metadata":`) {
			it.header = r.itemHeader
		}
		return true, it.check()
	}
	name, ok, err := p.member(r.at.first)
	r.at.first = false
	if err != nil {
		return false, err
	}
	if !ok {
		r.at.done = true
		if !r.eof {
			return false, errNeedMore // to check that nothing follows
		}
		return false, p.end()
	}
	switch name {
	case "kind":
		var kind string
		kind, err = p.textOrNull()
		r.list.Kind, r.at.hasKind = strings.Clone(kind), kind != ""
	case "metadata":
		err = p.listMetadata(&r.list)
		r.list.Continue = strings.Clone(r.list.Continue)
	case "items":
		if p.at('[') {
			r.at.inItems, r.at.first = true, true
			// The next step consumes the bracket.
			return false, nil
		}
		err = p.skip()
	default:
		err = p.skip()
	}
	return false, err
}
