// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A reader reads versions of one stream. It is for one goroutine, which uses the
// database meanwhile.
type reader struct {
	st    *Stream
	it    *pebble.Iterator // over the versions
	key   []byte
	chain []version // deltas, the newest first
	links []byte    // their bytes
	text  []byte
	spare []byte
}

// open makes the reader one of what is there now.
func (r *reader) open(st *Stream) (err error) {
	prefix := appendKey(nil, tableVersions, st.id)
	r.st = st
	r.it, err = st.s.iter(prefix, after(prefix))
	return err
}

func (r *reader) close() error { return damage(r.it.Close()) }

// current returns the version that the iterator is at. Its text is valid until
// the iterator moves.
func (r *reader) current() (key kube.Key, rv uint64, v version, err error) {
	value, err := r.it.ValueAndErr()
	if err == nil {
		key, rv, err = parseVersionKey(r.it.Key())
	}
	if err == nil {
		v, err = parseVersion(value, rv)
	}
	return key, rv, v, damage(err)
}

// seek goes to the newest version of the object at or before rv. False means
// that there is none.
func (r *reader) seek(key kube.Key, rv uint64) (bool, error) {
	r.key = appendVersionKey(r.key[:0], r.st.id, key, rv+1)
	if !r.it.SeekLT(r.key) {
		return false, damage(r.it.Error())
	}
	return bytes.Equal(r.it.Key()[:len(r.it.Key())-8], r.key[:len(r.key)-8]), nil
}

// resolve works out the text of the version that the iterator is at, into
// r.text. The iterator moves back.
func (r *reader) resolve() (v version, rv uint64, err error) {
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
		r.links = append(r.links, link.text...) // it is the iterator's
		link.text = r.links[n:]
		r.chain = append(r.chain, link)
		if len(r.chain) > longestChain || !r.it.Prev() {
			return v, rv, errors.Join(r.it.Error(), corrupt("%s at %d: no whole version before it", key, rv))
		}
		before, base, next, err := r.current()
		if err != nil {
			return v, rv, err
		}
		if before != key || base != link.base {
			return v, rv, corrupt("%s at %d: the version at %d, which it builds on, is missing", key, at, link.base)
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

// apply makes the next version of r.text.
func (r *reader) apply(delta []byte) (err error) {
	// The text is read, as a string, only until the next is made.
	r.spare, err = applyDelta(r.spare[:0], viewOf(r.text), delta)
	r.text, r.spare = r.spare, r.text
	return err
}

// object returns the object of r.text.
func (r *reader) object() (*scan.Object, error) {
	return parseText(string(r.text), r.st.columnsOf)
}

// get returns the object as of rv, nil if there was none.
func (r *reader) get(key kube.Key, rv uint64) (*scan.Object, error) {
	if ok, err := r.seek(key, rv); !ok {
		return nil, err
	}
	v, _, err := r.resolve()
	if err != nil || v.typ == kube.Deleted {
		return nil, err
	}
	return r.object()
}

// columnsOf returns the columnDefinitions with the number.
func (st *Stream) columnsOf(id uint64) (string, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	text, ok := st.texts[id]
	if !ok {
		return "", corrupt("columns %d of %s are missing", id, st.resource)
	}
	return text, nil
}

// read calls f with a reader of what is there now, if the state at rv still is.
func (st *Stream) read(rv uint64, r *reader, f func() error) (err error) {
	if err := st.s.use(); err != nil {
		return err
	}
	defer st.s.done()
	if err := r.open(st); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	// Asked now, it is of what the reader sees: the retained span moves before
	// anything is removed.
	if err := st.retained(rv); err != nil {
		return err
	}
	return f()
}

// retained fails with [ErrBefore] if rv is older than what is retained.
func (st *Stream) retained(rv uint64) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if rv < st.span.From.RV || st.gone {
		return st.refuse(ErrBefore, rv)
	}
	return nil
}

// Get returns the object as of rv, nil if there was none.
func (st *Stream) Get(key kube.Key, rv uint64) (o *scan.Object, err error) {
	var r reader
	err = st.read(rv, &r, func() error {
		o, err = r.get(key, rv)
		return err
	})
	return o, err
}
