// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history/delta"
)

// read calls f with a reader of the present content of the database, if the
// state at rv is retained.
func (st *Stream) read(ctx context.Context, rv uint64, r *versionReader, f func() error) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := st.s.acquire(); err != nil {
		return err
	}
	defer st.s.release()
	if err := r.open(st); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	// Checked after the iterator was opened, this holds for what the reader
	// sees: retention moves the span before it removes anything.
	if err := st.retained(rv); err != nil {
		return err
	}
	return f()
}

// retained fails with [ErrBefore] if rv is older than the retained span.
func (st *Stream) retained(rv uint64) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if rv < st.span.From.RV || st.removed {
		return st.rangeError(ErrBefore, rv)
	}
	return nil
}

// A versionReader reads versions of one stream. One goroutine uses it, while it
// holds the database open.
type versionReader struct {
	st    *Stream
	it    *pebble.Iterator // over tableVersions
	key   []byte
	chain []int  // where in links a delta ends, newest first
	links []byte // deltas
	text  []byte
	edits []scan.Edit
	b     builder
}

// open opens an iterator over the present content.
func (r *versionReader) open(st *Stream) (err error) {
	prefix := appendKey(nil, tableVersions, st.id)
	r.st, r.b.columns = st, st.columnsText
	r.it, err = st.s.iter(prefix, prefixEnd(prefix))
	return err
}

func (r *versionReader) close() error { return damage(r.it.Close()) }

// seek moves to the newest version of an object at or before rv. It returns
// false if there is none.
func (r *versionReader) seek(key kube.Key, rv uint64) (bool, error) {
	r.key = appendVersionKey(r.key[:0], r.st.id, key, rv+1)
	if !r.it.SeekLT(r.key) {
		return false, damage(r.it.Error())
	}
	return bytes.Equal(r.it.Key()[:len(r.it.Key())-8], r.key[:len(r.key)-8]), nil
}

// get returns an object as of rv, the zero value if there was none.
func (r *versionReader) get(key kube.Key, rv uint64) (o objectText, err error) {
	if ok, err := r.seek(key, rv); !ok {
		return o, err
	}
	v, _, err := r.resolve()
	if err != nil || v.typ == kube.Deleted {
		return o, err
	}
	return r.b.parse(string(r.text))
}

// current returns the version at the iterator. Its text is valid until the
// iterator moves.
func (r *versionReader) current() (key kube.Key, rv uint64, v version, err error) {
	value, err := r.it.ValueAndErr()
	if err == nil {
		key, rv, err = parseVersionKey(r.it.Key())
	}
	if err == nil {
		v, err = parseVersion(value, rv)
	}
	return key, rv, v, damage(err)
}

// resolve computes the text of the version at the iterator, into r.text. The
// iterator moves back.
func (r *versionReader) resolve() (v version, rv uint64, err error) {
	key, rv, v, err := r.current()
	if err != nil {
		return v, rv, err
	}
	r.chain, r.links, r.key = r.chain[:0], r.links[:0], append(r.key[:0], r.it.Key()...)
	object := r.key[:len(r.key)-8]
	for at, link := rv, v; ; {
		if !link.delta {
			r.text = append(r.text[:0], link.text...)
			break
		}
		r.links = append(r.links, link.text...) // the iterator owns the bytes
		r.chain = append(r.chain, len(r.links))
		if len(r.chain) > maxChain || !r.it.Prev() {
			return v, rv, errors.Join(r.it.Error(), corrupt("%s at %d: there is no whole version before it", key, rv))
		}
		before := r.it.Key()
		if len(before) != len(r.key) || !bytes.HasPrefix(before, object) || binary.BigEndian.Uint64(before[len(object):]) != link.base {
			return v, rv, corruptBase(key, at, link.base)
		}
		value, err := r.it.ValueAndErr()
		if err != nil {
			return v, rv, damage(err)
		}
		at = link.base
		if link, err = parseVersion(value, at); err != nil {
			return v, rv, err
		}
	}
	for i := len(r.chain) - 1; i >= 0; i-- {
		begin := 0
		if i > 0 {
			begin = r.chain[i-1]
		}
		if err := r.apply(r.links[begin:r.chain[i]]); err != nil {
			return v, rv, corrupt("%s at %d: %v", key, rv, err)
		}
	}
	return v, rv, nil
}

// apply replaces r.text by the next version's text.
func (r *versionReader) apply(d []byte) error {
	if delta.Overwrite(r.text, d) {
		return nil
	}
	var ok bool
	if r.edits, ok = delta.Edits(r.edits[:0], viewOf(r.text), d); ok {
		r.text = delta.Patch(r.text, r.edits)
		return nil
	}
	return delta.ErrMismatch
}

// An objectText is an object and its text.
type objectText struct {
	o    *scan.Object
	text string
}

// A builder makes versions from deltas. One goroutine uses it.
type builder struct {
	columns func(id uint64) (string, error)
	edits   []scan.Edit
	// The last columns.
	number, definitions string
}

// make returns a version of an object, whose version before it is prev.
func (b *builder) make(prev objectText, key kube.Key, rv uint64, v version) (next objectText, err error) {
	switch {
	case !v.delta:
		return b.parse(string(v.text))
	case prev.o == nil || prev.o.RV != v.base:
		return next, corruptBase(key, rv, v.base)
	}
	if next, err = b.apply(prev, v.text); errors.Is(err, delta.ErrMismatch) {
		err = corrupt("%s at %d: %v", key, rv, err)
	}
	return next, err
}

// apply returns the version that a delta makes of the one before it. It parses the text
// only if the edits may change what a [scan.Object] tells apart.
func (b *builder) apply(prev objectText, d []byte) (next objectText, err error) {
	var ok bool
	if b.edits, ok = delta.Edits(b.edits[:0], prev.text, d); !ok {
		return next, delta.ErrMismatch
	}
	size, n, end := len(prev.text), 0, len(prev.o.JSON) // of the text; edits of the JSON, and its size
	for i := range b.edits {
		e := &b.edits[i]
		longer := len(e.Text) - (e.To - e.From)
		size += longer
		if e.To < len(prev.o.JSON) {
			n++
			end += longer
		} else if e.From <= len(prev.o.JSON) {
			ok = false // the text has to be parsed
		}
	}
	next.text = viewOf(delta.Patched(make([]byte, 0, size), prev.text, b.edits))
	if !ok || next.text[end] != 0 {
		return b.parse(next.text)
	}
	if next.o = prev.o.Edited(next.text[:end], b.edits[:n]); next.o == nil {
		return b.parse(next.text)
	}
	return next, b.setRow(next.o, next.text[end+1:])
}

// parse parses the text of a version.
func (b *builder) parse(text string) (objectText, error) {
	json, row, ok := strings.Cut(text, "\x00")
	if !ok {
		return objectText{}, corrupt("a version of %d bytes is incomplete", len(text))
	}
	o, err := scan.ParseStored(json)
	if err != nil {
		return objectText{}, corrupt("%v", err)
	}
	return objectText{o, text}, b.setRow(o, row)
}

// setRow sets the row and its columns from the end of a version's text.
func (b *builder) setRow(o *scan.Object, text string) error {
	row, number, ok := strings.Cut(text, "\x00")
	o.Row = row
	if ok && number == b.number {
		o.Columns = b.definitions
		return nil
	}
	id, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		return corrupt("a version of %d bytes is incomplete", len(text))
	}
	if o.Columns, err = b.columns(id); err == nil {
		b.number, b.definitions = strings.Clone(number), o.Columns
	}
	return err
}

// viewOf returns a string that shares memory with b. It is valid while b does
// not change.
func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// columnsText returns columnDefinitions by ID.
func (st *Stream) columnsText(id uint64) (string, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	text, ok := st.columnsByID[id]
	if !ok {
		return "", corrupt("columns %d of %s are missing", id, st.resource)
	}
	return text, nil
}
