// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
)

// ErrReadOnly is returned by those methods of an informer's store that would
// modify it.
var ErrReadOnly = errors.New("informer store is read-only")

// An indexer implements cache.Indexer.
type indexer[T runtime.Object] struct {
	inf *informer.Informer[T]

	mu      sync.RWMutex // guards indexes
	indexes map[string]*index[T]
}

type index[T runtime.Object] struct {
	*informer.Index[T, string]
	find cache.IndexFunc
}

// AddIndexers implements cache.Indexer.
func (s *indexer[T]) AddIndexers(indexers cache.Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, find := range indexers {
		switch {
		case s.indexes[name] != nil:
			return fmt.Errorf("index %q exists already", name)
		case find == nil:
			return fmt.Errorf("the function of index %q is nil", name)
		}
	}
	for name, find := range indexers {
		s.indexes[name] = &index[T]{informer.AddIndex(s.inf, keysBy[T](name, find)), find}
	}
	return nil
}

// keysBy converts an index function of client-go to one of package informer.
func keysBy[T runtime.Object](name string, find cache.IndexFunc) func(informer.Ref[T]) ([]string, error) {
	if reflect.ValueOf(find).Pointer() == reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer() {
		return func(ref informer.Ref[T]) ([]string, error) { return []string{ref.Key().Namespace}, nil }
	}
	return func(ref informer.Ref[T]) ([]string, error) {
		o, ok := object(ref)
		if !ok {
			return nil, nil
		}
		keys, err := find(o)
		if err != nil {
			// As in client-go: the index would stay wrong.
			panic(fmt.Errorf("index %q of %s: %w", name, ref.Key(), err))
		}
		return keys, nil
	}
}

// GetIndexers implements cache.Indexer.
func (s *indexer[T]) GetIndexers() cache.Indexers {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := cache.Indexers{}
	for name, x := range s.indexes {
		all[name] = x.find
	}
	return all
}

func (s *indexer[T]) index(name string) (*index[T], error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if x := s.indexes[name]; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("index %q does not exist", name)
}

// objects decodes objects and leaves out those that cannot be decoded.
func objects[T runtime.Object](refs iter.Seq2[informer.Key, informer.Ref[T]]) []any {
	all := []any{}
	for _, ref := range refs {
		if o, ok := object(ref); ok {
			all = append(all, o)
		}
	}
	return all
}

// Index implements cache.Indexer.
func (s *indexer[T]) Index(name string, obj any) ([]any, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	keys, err := x.find(obj)
	if err != nil {
		return nil, err
	}
	found := map[informer.Key]informer.Ref[T]{} // without duplicates
	for _, key := range keys {
		maps.Insert(found, x.Get(key))
	}
	return objects(maps.All(found)), nil
}

// ByIndex implements cache.Indexer.
func (s *indexer[T]) ByIndex(name, key string) ([]any, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	return objects(x.Get(key)), nil
}

// IndexKeys implements cache.Indexer.
func (s *indexer[T]) IndexKeys(name, key string) ([]string, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	keys := names(x.Get(key))
	slices.Sort(keys)
	return keys, nil
}

func names[T any](refs iter.Seq2[informer.Key, informer.Ref[T]]) []string {
	all := []string{}
	for key := range refs {
		all = append(all, key.String())
	}
	return all
}

// ListIndexFuncValues implements cache.Indexer. As in client-go, it returns none
// for an index that does not exist.
func (s *indexer[T]) ListIndexFuncValues(name string) []string {
	x, err := s.index(name)
	if err != nil {
		return nil
	}
	return x.Keys()
}

// List implements cache.Store.
func (s *indexer[T]) List() []any { return objects(s.inf.All()) }

// ListKeys implements cache.Store.
func (s *indexer[T]) ListKeys() []string { return names(s.inf.All()) }

// Get implements cache.Store.
func (s *indexer[T]) Get(obj any) (item any, exists bool, err error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, cache.KeyError{Obj: obj, Err: err}
	}
	return s.GetByKey(key)
}

// GetByKey implements cache.Store.
func (s *indexer[T]) GetByKey(key string) (item any, exists bool, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, false, nil // no object has such a key
	}
	ref, ok := s.inf.Get(informer.Key{Namespace: namespace, Name: name})
	if !ok {
		return nil, false, nil
	}
	o, err := ref.Object()
	if err != nil {
		return nil, false, err
	}
	return o, true, nil
}

// LastStoreSyncResourceVersion implements cache.Store.
func (s *indexer[T]) LastStoreSyncResourceVersion() string { return lastRV(s.inf) }

// Add implements cache.Store. It and the methods below do not modify the store.
func (s *indexer[T]) Add(any) error               { return ErrReadOnly }
func (s *indexer[T]) Update(any) error            { return ErrReadOnly }
func (s *indexer[T]) Delete(any) error            { return ErrReadOnly }
func (s *indexer[T]) Replace([]any, string) error { return ErrReadOnly }
func (s *indexer[T]) Resync() error               { return ErrReadOnly }
func (s *indexer[T]) Bookmark(string)             {}
