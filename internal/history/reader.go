// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history/delta"
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
	chain []version // deltas, newest first
	links []byte    // bytes of the chain
	text  []byte
	spare []byte
}

// open opens an iterator over the present content.
func (r *versionReader) open(st *Stream) (err error) {
	prefix := appendKey(nil, tableVersions, st.id)
	r.st = st
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

// get returns an object as of rv, nil if there was none.
func (r *versionReader) get(key kube.Key, rv uint64) (*scan.Object, error) {
	if ok, err := r.seek(key, rv); !ok {
		return nil, err
	}
	v, _, err := r.resolve()
	if err != nil || v.typ == kube.Deleted {
		return nil, err
	}
	return r.object()
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
	r.chain, r.links = r.chain[:0], r.links[:0]
	for at, link := rv, v; ; {
		if !link.delta {
			r.text = append(r.text[:0], link.text...)
			break
		}
		n := len(r.links)
		r.links = append(r.links, link.text...) // the iterator owns the bytes
		link.text = r.links[n:]
		r.chain = append(r.chain, link)
		if len(r.chain) > maxChain || !r.it.Prev() {
			return v, rv, errors.Join(r.it.Error(), corrupt("%s at %d: there is no whole version before it", key, rv))
		}
		before, base, next, err := r.current()
		if err != nil {
			return v, rv, err
		}
		if before != key || base != link.base {
			return v, rv, corruptBase(key, at, link.base)
		}
		at, link = base, next
	}
	for _, link := range slices.Backward(r.chain) {
		if err := r.apply(link.text); err != nil {
			return v, rv, corrupt("%s at %d: %v", key, rv, err)
		}
	}
	return v, rv, nil
}

// apply replaces r.text by the next version's text.
func (r *versionReader) apply(d []byte) (err error) {
	// The string view is used only while r.text is unchanged.
	r.spare, err = delta.Apply(r.spare[:0], viewOf(r.text), d)
	r.text, r.spare = r.spare, r.text
	return err
}

// object parses r.text.
func (r *versionReader) object() (*scan.Object, error) {
	return parseText(string(r.text), r.st.columnsText)
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
