// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"iter"
	"runtime"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// This file reads the state at an RV: one object (Get), many (List), or their
// number (Count). The RV should have passed [Stream.Check]: these methods fail
// with [ErrBefore] when retention has overtaken rv, but do not look for gaps.
// All of them end with the cause of ctx when it is canceled.

// maxPage is how many objects one goroutine reads at a time. firstPage is the
// size of the first page: a caller that takes few objects has few read.
const maxPage, firstPage = 256, 8

// Get returns an object as of rv, nil if there was none.
func (st *Stream) Get(ctx context.Context, rv uint64, key kube.Key) (o *scan.Object, err error) {
	var r versionReader
	err = st.read(ctx, rv, &r, func() error {
		got, err := r.get(key, rv)
		o = got.o
		return err
	})
	return o, err
}

// List yields the objects of a namespace ("" means all namespaces) as of rv,
// ordered by key, from the first key that is at least from. An error is the
// last element. While the caller handles an object, no lock is held.
func (st *Stream) List(ctx context.Context, rv uint64, namespace string, from kube.Key) iter.Seq2[*scan.Object, error] {
	return func(yield func(*scan.Object, error) bool) {
		type page struct {
			objects []*scan.Object
			size    int // number of names
			err     error
		}
		var pages []chan page // being read, in order
		defer func() {
			for _, p := range pages {
				<-p
			}
		}()
		yielded, requested := 0, 0
		for more := true; more || len(pages) > 0; {
			size := min(max(yielded, firstPage), maxPage)
			// Read ahead at most as much as the caller has already taken, and enough
			// that no processor waits for the next names.
			if more && len(pages) < 2*runtime.GOMAXPROCS(0) && (len(pages) == 0 || requested+size <= 2*yielded) {
				requested += size
				names, err := st.names(ctx, rv, namespace, from, size)
				if err != nil {
					yield(nil, err)
					return
				}
				p := make(chan page, 1)
				pages = append(pages, p)
				read := func() {
					objects, err := st.objects(ctx, rv, names)
					p <- page{objects, size, err}
				}
				if more = len(names) == size; more {
					from = names[size-1] + "\x00"
					go read()
				} else {
					read()
				}
				continue
			}
			p := <-pages[0]
			pages = pages[1:]
			yielded += p.size
			for _, o := range p.objects {
				if !yield(o, nil) {
					return
				}
			}
			if p.err != nil {
				yield(nil, p.err)
				return
			}
		}
	}
}

// Count returns how many objects [Stream.List] would yield. It reads names
// only, except where a name was used by more than one object.
func (st *Stream) Count(ctx context.Context, rv uint64, namespace string, from kube.Key) (n int, err error) {
	var r versionReader
	err = st.read(ctx, rv, &r, func() (err error) {
		it, err := st.s.iter(st.nameBounds(namespace, from))
		if err != nil {
			return err
		}
		defer func() { err = damage(errors.Join(err, it.Error(), it.Close())) }()
		for it.First(); it.Valid(); it.Next() {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			value, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			l, err := parseLifetime(value)
			if err != nil {
				return err
			}
			switch {
			case !l.covers(rv):
			case rv >= l.born:
				n++
			default: // an earlier object of this name may have lived at rv
				o, err := r.get(kube.Key(it.Key()[prefixLen:]), rv)
				if err != nil {
					return err
				}
				if o.o != nil {
					n++
				}
			}
		}
		return nil
	})
	return n, err
}

// nameBounds returns the bounds of the names of a namespace, from a key on.
func (st *Stream) nameBounds(namespace string, from kube.Key) (lower, upper []byte) {
	upper = prefixEnd(appendKey(nil, tableNames, st.id))
	if namespace != "" {
		from = max(from, kube.Key(namespace+"/"))
		upper = appendNameKey(nil, st.id, kube.Key(namespace+"0")) // '0' is the byte after '/'
	}
	return appendNameKey(nil, st.id, from), upper
}

// names returns the first n names, from a key on, of objects that may have lived
// at rv.
func (st *Stream) names(ctx context.Context, rv uint64, namespace string, from kube.Key, n int) ([]kube.Key, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := st.s.acquire(); err != nil {
		return nil, err
	}
	defer st.s.release()
	it, err := st.s.iter(st.nameBounds(namespace, from))
	if err != nil {
		return nil, err
	}
	var names []kube.Key
	for it.First(); err == nil && it.Valid() && len(names) < n; it.Next() {
		var l lifetime
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			l, err = parseLifetime(value)
		}
		if l.covers(rv) {
			names = append(names, kube.Key(it.Key()[prefixLen:]))
		}
	}
	return names, damage(errors.Join(err, it.Error(), it.Close()))
}

// objects returns the objects that had these names at rv.
func (st *Stream) objects(ctx context.Context, rv uint64, names []kube.Key) (objects []*scan.Object, err error) {
	objects = make([]*scan.Object, 0, len(names))
	var r versionReader
	err = st.read(ctx, rv, &r, func() error {
		for _, key := range names {
			got, err := r.get(key, rv)
			if err != nil {
				return err
			}
			if got.o != nil {
				objects = append(objects, got.o)
			}
		}
		return nil
	})
	return objects, err
}
