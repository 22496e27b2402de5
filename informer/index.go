// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"iter"
	"slices"
)

// An Index finds the objects of an informer by a key of any comparable type.
// Make it with [AddIndex].
type Index[T any, K comparable] struct {
	of   *Informer[T]
	find func(Ref[T]) iter.Seq[K]

	// Guarded by of.mu.
	byKey  map[K]map[*record[T]]bool
	keysOf map[*record[T]][]K
}

// AddIndex returns an index of the informer's objects by the keys that find
// yields for them, none or several. find is called once for each version of an
// object; it must not call the informer. An index stays as long as the
// informer.
func AddIndex[T any, K comparable](i *Informer[T], find func(Ref[T]) iter.Seq[K]) *Index[T, K] {
	x := &Index[T, K]{of: i, find: find, byKey: map[K]map[*record[T]]bool{}, keysOf: map[*record[T]][]K{}}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.recordsLocked() {
		x.replace(nil, r, x.keys(r))
	}
	i.indexes = append(slices.Clone(i.indexes), x)
	return x
}

// An indexer is an index, whatever its keys.
type indexer[T any] interface {
	// keys returns those of a record, which may be nil, for replace.
	keys(r *record[T]) any
	replace(old, now *record[T], keys any)
}

func (x *Index[T, K]) keys(r *record[T]) any {
	if r == nil {
		return nil
	}
	var all []K
	for k := range x.find(Ref[T]{r}) {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

func (x *Index[T, K]) replace(old, now *record[T], keys any) {
	for _, k := range x.keysOf[old] {
		if delete(x.byKey[k], old); len(x.byKey[k]) == 0 {
			delete(x.byKey, k)
		}
	}
	delete(x.keysOf, old)
	of, _ := keys.([]K)
	if len(of) > 0 {
		x.keysOf[now] = of
	}
	for _, k := range of {
		if x.byKey[k] == nil {
			x.byKey[k] = map[*record[T]]bool{}
		}
		x.byKey[k][now] = true
	}
}

// Get yields the objects that have the key at this moment, in no particular
// order.
func (x *Index[T, K]) Get(key K) iter.Seq2[Key, Ref[T]] {
	return func(yield func(Key, Ref[T]) bool) {
		x.of.mu.RLock()
		found := make([]*record[T], 0, len(x.byKey[key]))
		for r := range x.byKey[key] {
			found = append(found, r)
		}
		x.of.mu.RUnlock()
		for _, r := range found {
			if ref := (Ref[T]{r}); !yield(ref.Key(), ref) {
				return
			}
		}
	}
}

// Keys returns the keys that any object has at this moment, in no particular
// order.
func (x *Index[T, K]) Keys() []K {
	x.of.mu.RLock()
	defer x.of.mu.RUnlock()
	all := make([]K, 0, len(x.byKey))
	for k := range x.byKey {
		all = append(all, k)
	}
	return all
}
