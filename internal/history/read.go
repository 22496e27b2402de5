// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// A reader reads versions of one stream. It is for one goroutine.
type reader struct {
	st      *Stream
	it      *pebble.Iterator // over the versions
	columns map[uint64]string
	chain   []version // deltas, the newest first
	text    []byte
	spare   []byte
}

func (st *Stream) reader() (*reader, error) {
	prefix := appendKey(nil, tableVersions, st.id)
	it, err := st.s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, err
	}
	return &reader{st: st, it: it, columns: map[uint64]string{}}, nil
}

func (r *reader) close() error { return r.it.Close() }

// current returns the version that the iterator is at.
func (r *reader) current() (key kube.Key, rv uint64, v version, err error) {
	if key, rv, err = parseVersionKey(r.it.Key()); err != nil {
		return key, rv, v, err
	}
	value, err := r.it.ValueAndErr()
	if err != nil {
		return key, rv, v, err
	}
	v, err = parseVersion(value, rv)
	return key, rv, v, err
}

// resolve works out the text of the version that the iterator is at, into
// r.text. The iterator moves back.
func (r *reader) resolve() (v version, rv uint64, err error) {
	key, rv, v, err := r.current()
	if err != nil {
		return v, rv, err
	}
	r.chain = r.chain[:0]
	for at, link := rv, v; ; {
		if !link.delta {
			r.text = append(r.text[:0], link.text...)
			break
		}
		link.text = bytes.Clone(link.text) // it is the iterator's
		r.chain = append(r.chain, link)
		if len(r.chain) > longestChain || !r.it.Prev() {
			return v, rv, corrupt("%s at %d: no whole version before it", key, rv)
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
	r.spare, err = applyDelta(r.spare[:0], unsafe.String(unsafe.SliceData(r.text), len(r.text)), delta)
	r.text, r.spare = r.spare, r.text
	return err
}

// object returns the object of r.text.
func (r *reader) object() (*kube.Object, error) {
	return parseText(string(r.text), r.column)
}

func (r *reader) column(id uint64) (string, error) {
	text, ok := r.columns[id]
	if !ok {
		value, closer, err := r.st.s.db.Get(numberKey(tableColumns, r.st.id, id))
		if err != nil {
			return "", err
		}
		text = string(value)
		if err := closer.Close(); err != nil {
			return "", err
		}
		r.columns[id] = text
	}
	return text, nil
}

// seek goes to the newest version of the object at or before rv. False means
// that there is none.
func (r *reader) seek(key kube.Key, rv uint64) (bool, error) {
	if !r.it.SeekLT(appendVersionKey(nil, r.st.id, key, rv+1)) {
		return false, r.it.Error()
	}
	got, _, err := parseVersionKey(r.it.Key())
	return got == key, err
}

// Get returns the object as of rv, nil if there was none.
func (st *Stream) Get(key kube.Key, rv uint64) (*kube.Object, error) {
	r, err := st.reader()
	if err != nil {
		return nil, err
	}
	o, err := r.get(key, rv)
	return o, errors.Join(err, r.close())
}

func (r *reader) get(key kube.Key, rv uint64) (*kube.Object, error) {
	if ok, err := r.seek(key, rv); !ok {
		return nil, err
	}
	v, _, err := r.resolve()
	if err != nil || v.typ == kube.Deleted {
		return nil, err
	}
	return r.object()
}

// All yields the objects as of rv of a namespace, "" for all, in list order,
// from the first whose key is at least from. An error is the last it yields.
func (st *Stream) All(rv uint64, namespace string, from kube.Key) iter.Seq2[*kube.Object, error] {
	return func(yield func(*kube.Object, error) bool) {
		r, err := st.reader()
		if err != nil {
			yield(nil, err)
			return
		}
		err = r.all(rv, namespace, from, func(_ version, o *kube.Object) bool { return yield(o, nil) })
		if err = errors.Join(err, r.close()); err != nil {
			yield(nil, err)
		}
	}
}

// all calls f for the objects as of rv, until it returns false.
func (r *reader) all(rv uint64, namespace string, from kube.Key, f func(version, *kube.Object) bool) error {
	lower := appendKey(nil, tableVersions, r.st.id)
	if namespace != "" {
		from = max(from, kube.Key(namespace+"/"))
	}
	for next := append(lower, from...); r.it.SeekGE(next); {
		key, _, err := parseVersionKey(r.it.Key())
		if err != nil {
			return err
		}
		if namespace != "" && key.Namespace() != namespace {
			return nil
		}
		next = append(append(next[:prefixLen], key...), 1) // behind all its versions
		ok, err := r.seek(key, rv)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		v, _, err := r.resolve()
		if err != nil {
			return err
		}
		if v.typ == kube.Deleted {
			continue
		}
		o, err := r.object()
		if err != nil {
			return err
		}
		if !f(v, o) {
			return nil
		}
	}
	return r.it.Error()
}

// Versions yields what happened to an object, in order, from the first event
// above rv on, or above the oldest retained moment: what it was there is the
// first one's Prev, and Get returns it. An error is the last it yields.
func (st *Stream) Versions(key kube.Key, rv uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r, err := st.reader()
		if err != nil {
			yield(Event{}, err)
			return
		}
		stopped, err := r.versions(key, rv, func(e Event) bool { return yield(e, nil) })
		if err = errors.Join(err, r.close()); err != nil && !stopped {
			yield(Event{}, err)
		}
	}
}

func (r *reader) versions(key kube.Key, rv uint64, f func(Event) bool) (stopped bool, err error) {
	var prev *kube.Object
	rv = max(rv, r.st.Span().From.RV) // what is older are states, no events
	ok, err := r.seek(key, rv)
	if err != nil {
		return false, err
	}
	if ok {
		if prev, err = r.get(key, rv); err != nil {
			return false, err
		}
	}
	for r.it.SeekGE(appendVersionKey(nil, r.st.id, key, rv+1)); r.it.Valid(); r.it.Next() {
		got, at, v, err := r.current()
		if err != nil || got != key {
			return false, err
		}
		if !v.delta {
			r.text = append(r.text[:0], v.text...)
		} else if err := r.apply(v.text); err != nil {
			return false, corrupt("%s at %d: %v", key, at, err)
		}
		o, err := r.object()
		if err != nil {
			return false, err
		}
		if !f(Event{Type: v.typ, Object: o, Prev: prev, Inferred: v.inferred, At: v.at}) {
			return true, nil
		}
		if prev = o; v.typ == kube.Deleted {
			prev = nil
		}
	}
	return false, r.it.Error()
}
