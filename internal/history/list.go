// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"errors"
	"iter"
	"runtime"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A life is when an object of a name lived, the last time that there was one.
type life struct {
	born, died uint64 // RVs; died is 0 while it lives
	earlier    bool   // there were others before
}

func appendLife(b []byte, l life) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, l.born), l.died)
	if l.earlier {
		b = append(b, 1)
	}
	return b
}

func parseLife(b []byte) (l life, err error) {
	born, n := binary.Uvarint(b)
	died, m := binary.Uvarint(b[max(n, 0):])
	if n <= 0 || m <= 0 || len(b) > n+m+1 {
		return l, corrupt("%q is no life", b)
	}
	return life{born, died, len(b) > n+m}, nil
}

// at reports whether the object may have lived at rv.
func (l life) at(rv uint64) bool {
	if rv < l.born {
		return l.earlier
	}
	return l.died == 0 || rv < l.died
}

func appendNameKey(b []byte, s streamID, key kube.Key) []byte {
	return append(appendKey(b, tableNames, s), key...)
}

// pageSize is how many objects are read at a time at the most, by one goroutine, and
// firstPage how many at first: who wants few is not to pay for many.
const pageSize, firstPage = 256, 8

// All yields the objects as of rv of a namespace, "" for all, in list order,
// from the first whose key is at least from. An error is the last it yields.
func (st *Stream) All(rv uint64, namespace string, from kube.Key) iter.Seq2[*scan.Object, error] {
	return func(yield func(*scan.Object, error) bool) {
		type page struct {
			objects []*scan.Object
			size    int // of names
			err     error
		}
		var pages []chan page // that are being read, in order
		defer func() {
			for _, p := range pages {
				<-p
			}
		}()
		yielded, asked := 0, 0
		for more := true; more || len(pages) > 0; {
			size := min(max(yielded, firstPage), pageSize)
			// Not more is read ahead than was taken.
			if more && len(pages) < runtime.GOMAXPROCS(0) && (len(pages) == 0 || asked+size <= 2*yielded) {
				asked += size
				names, err := st.names(rv, namespace, from, size)
				if err != nil {
					yield(nil, err)
					return
				}
				p := make(chan page, 1)
				pages = append(pages, p)
				read := func() {
					objects, err := st.objects(rv, names)
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

// names returns the first n names, from one on, of objects that may have
// lived at rv.
func (st *Stream) names(rv uint64, namespace string, from kube.Key, n int) ([]kube.Key, error) {
	if err := st.s.use(); err != nil {
		return nil, err
	}
	defer st.s.done()
	end := after(appendKey(nil, tableNames, st.id))
	if namespace != "" {
		from = max(from, kube.Key(namespace+"/"))
		end = appendNameKey(nil, st.id, kube.Key(namespace+"0")) // '0' is the byte after '/'
	}
	it, err := st.s.iter(appendNameKey(nil, st.id, from), end)
	if err != nil {
		return nil, err
	}
	var names []kube.Key
	for it.First(); err == nil && it.Valid() && len(names) < n; it.Next() {
		var l life
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			l, err = parseLife(value)
		}
		if l.at(rv) {
			names = append(names, kube.Key(it.Key()[prefixLen:]))
		}
	}
	return names, damage(errors.Join(err, it.Error(), it.Close()))
}

// objects returns those that had the names at rv.
func (st *Stream) objects(rv uint64, names []kube.Key) (objects []*scan.Object, err error) {
	objects = make([]*scan.Object, 0, len(names))
	var r reader
	err = st.read(rv, &r, func() error {
		for _, key := range names {
			o, err := r.get(key, rv)
			if err != nil {
				return err
			}
			if o != nil {
				objects = append(objects, o)
			}
		}
		return nil
	})
	return objects, err
}
