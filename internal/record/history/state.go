// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// This file reads the state at an RV: one object (Get), many (List, Texts), or their
// number (Count), and what differs between two of them (Changed). The RV should have passed [Stream.Check]: these methods fail
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

// Changed returns the keys of the objects of a namespace, "" for all, that changed between
// two RVs, in either order, sorted. It reads the log only, at most limit entries: if there
// are more, it fails with [ErrTooMany]. An object whose state is the same at both RVs may
// be among them.
func (st *Stream) Changed(ctx context.Context, a, b uint64, namespace string, limit int) (keys []kube.Key, err error) {
	if err := st.s.acquire(); err != nil {
		return nil, err
	}
	defer st.s.release()
	from, to := min(a, b), max(a, b)
	found, read := map[kube.Key]struct{}{}, 0
	prefix := namespace + "/"
	err = st.scanLog(from, to, func(key []byte, _ uint64, _ version) bool {
		if read++; read > limit || read%1024 == 0 && ctx.Err() != nil {
			return false
		}
		if namespace == "" || bytes.HasPrefix(key, []byte(prefix)) {
			if _, ok := found[kube.Key(key)]; !ok {
				found[kube.Key(key)] = struct{}{}
			}
		}
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case read > limit:
		return nil, fmt.Errorf("%w: more than %d between %d and %d", ErrTooMany, limit, from, to)
	}
	// Retention may have removed entries while they were read.
	return slices.Sorted(maps.Keys(found)), st.retained(from)
}

// Texts calls f with the JSON of the objects with some sorted keys as of rv, "" for one
// that did not exist. Unlike [Stream.List] it keeps nothing: the JSON is valid only during
// the call. Goroutines read a part of the keys each: f is called for one of their keys
// after the other, with the number of the part, below [Stream.Parts].
func (st *Stream) Texts(ctx context.Context, rv uint64, keys []kube.Key, f func(part int, key kube.Key, json string)) error {
	var group errgroup.Group
	parts := st.Parts()
	for part := range parts {
		mine := keys[part*len(keys)/parts : (part+1)*len(keys)/parts]
		group.Go(func() error {
			var r versionReader
			return st.read(ctx, rv, &r, func() error {
				for i, key := range mine {
					if i%64 == 0 && ctx.Err() != nil {
						return context.Cause(ctx)
					}
					text, err := r.textOf(key, rv)
					if err != nil {
						return err
					}
					f(part, key, text)
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// Parts returns in how many parts [Stream.Texts] reads.
func (st *Stream) Parts() int { return runtime.GOMAXPROCS(0) }

// textOf returns the JSON of an object as of rv, "" if there was none. It is valid until
// the reader reads again.
func (r *versionReader) textOf(key kube.Key, rv uint64) (string, error) {
	if ok, err := r.seek(key, rv); !ok {
		return "", err
	}
	v, _, err := r.resolve()
	if err != nil || v.typ == kube.Deleted {
		return "", err
	}
	json, _, ok := strings.Cut(viewOf(r.text), "\x00")
	if !ok {
		return "", corrupt("a version of %d bytes is incomplete", len(r.text))
	}
	return json, nil
}
