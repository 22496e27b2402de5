// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Get returns an object, and whether it exists.
func (i *Informer[T]) Get(key Key) (Ref[T], bool) {
	var buf [128]byte
	id := buf[:0]
	if key.Namespace != "" {
		id = append(append(id, key.Namespace...), '/')
	}
	id = append(id, key.Name...)
	i.mu.RLock()
	defer i.mu.RUnlock()
	s := cmp.Or(i.shards[""], i.shards[key.Namespace])
	if s == nil {
		return Ref[T]{}, false
	}
	r := s.objects[string(id)]
	return Ref[T]{r}, r != nil
}

// All yields the objects as of the beginning of the loop, in no particular
// order. No lock is held during the loop.
func (i *Informer[T]) All() iter.Seq2[Key, Ref[T]] {
	return func(yield func(Key, Ref[T]) bool) {
		for _, r := range i.records() {
			if ref := (Ref[T]{r}); !yield(ref.Key(), ref) {
				return
			}
		}
	}
}

func (i *Informer[T]) records() []*record[T] {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.recordsLocked()
}

func (i *Informer[T]) recordsLocked() []*record[T] {
	all := make([]*record[T], 0, i.lenLocked())
	for _, s := range i.shards {
		for _, r := range s.objects {
			all = append(all, r)
		}
	}
	return all
}

// Len returns the number of objects.
func (i *Informer[T]) Len() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.lenLocked()
}

func (i *Informer[T]) lenLocked() int {
	n := 0
	for _, s := range i.shards {
		n += len(s.objects)
	}
	return n
}

// An Index finds the objects of an informer by keys of any comparable type.
// Make it with [AddIndex]. Any goroutine may call its methods.
type Index[T any, K comparable] struct {
	of   *Informer[T]
	find func(Ref[T]) ([]K, error)

	// Guarded by of.mu.
	byKey  map[K]map[*record[T]]bool
	keysOf map[*record[T]][]K
}

// AddIndex returns an index by the keys that find returns for an object: none,
// one or several. find is called once for each version of an object and must
// not call the informer. If it fails, the index does not have the object, and
// subscribers get the error, as from a failed watch. The index exists as long as the
// informer does. AddIndex panics if i or find is nil.
func AddIndex[T any, K comparable](i *Informer[T], find func(Ref[T]) ([]K, error)) *Index[T, K] {
	if i == nil || find == nil {
		panic("informer: AddIndex needs an informer and a function")
	}
	x := &Index[T, K]{of: i, find: find, byKey: map[K]map[*record[T]]bool{}, keysOf: map[*record[T]][]K{}}
	var failures []error
	defer func() {
		for _, err := range failures {
			i.metrics.Failed(err)
		}
	}()
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.recordsLocked() {
		keys, err := x.keys(r)
		if err != nil {
			failures = append(failures, err)
			i.events.publish(entry[T]{err: err})
		}
		x.replace(nil, r, keys)
	}
	i.indexes = append(slices.Clone(i.indexes), x)
	return x
}

// ByNamespace is the function of an index of namespaces:
//
//	byNamespace := informer.AddIndex(pods, informer.ByNamespace)
func ByNamespace[T any](r Ref[T]) ([]string, error) { return []string{r.Key().Namespace}, nil }

// ByLabel returns the function of an index of the values of a label. It decodes nothing.
//
//	byApp := informer.AddIndex(pods, informer.ByLabel[*corev1.Pod]("app"))
func ByLabel[T any](label string) func(Ref[T]) ([]string, error) {
	return func(r Ref[T]) ([]string, error) {
		if value, ok := r.Label(label); ok {
			return []string{value}, nil
		}
		return nil, nil
	}
}

// An indexer is an [Index] with keys of any type.
type indexer[T any] interface {
	// keys returns the keys of a record for replace; nil for nil. No lock is
	// needed.
	keys(r *record[T]) (any, error)
	// replace replaces a record, with the lock held. Either may be nil.
	replace(old, now *record[T], keys any)
}

func (x *Index[T, K]) keys(r *record[T]) (any, error) {
	if r == nil {
		return nil, nil
	}
	found, err := x.find(Ref[T]{r})
	if err != nil {
		return nil, fmt.Errorf("index of %s: %w", Ref[T]{r}.Key(), err)
	}
	if len(found) < 2 {
		return slices.Clone(found), nil
	}
	var all []K
	seen := make(map[K]bool, len(found))
	for _, k := range found {
		if !seen[k] {
			seen[k] = true
			all = append(all, k)
		}
	}
	return all, nil
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

// Get yields the objects that have the key when the loop begins, in no
// particular order.
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

// Keys returns the keys that at least one object has, in no particular order.
func (x *Index[T, K]) Keys() []K {
	x.of.mu.RLock()
	defer x.of.mu.RUnlock()
	all := make([]K, 0, len(x.byKey))
	for k := range x.byKey {
		all = append(all, k)
	}
	return all
}
