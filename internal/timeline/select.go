// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"iter"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// scanPerLookup is how many objects are scanned in the time that it takes to find
// one by its key. An index that finds more than this part of them is not used.
const scanPerLookup = 8

// Select yields the objects of a namespace, "" for all, in list order, beginning
// with the first whose key is at least from: all that have the attribute with one
// of its values, and perhaps others. With a nil attribute it yields all.
//
// An attribute that is requested again gets an index, which the caller that
// requests it builds. A snapshot of the past has no indexes.
func (s *Snapshot) Select(namespace string, from kube.Key, a *Attribute) iter.Seq[*scan.Object] {
	if a == nil || !a.indexable() || s.timeline == nil || s.Len() < s.timeline.indexes.minObjects {
		return s.All(namespace, from)
	}
	x, ok := s.indexes[a.name()]
	if !ok {
		if s.timeline.indexes.request(a.name()) {
			s.timeline.buildIndex(a)
		}
		return s.All(namespace, from)
	}
	x.requested.Store(time.Now().Unix())
	keys, ok := lookup(x.shared, a.Values, namespace, from, s.Len()/scanPerLookup)
	if !ok {
		return s.All(namespace, from)
	}
	slices.Sort(keys)
	return func(yield func(*scan.Object) bool) {
		for _, key := range keys {
			if o := s.Get(key); o != nil && !yield(o) {
				return
			}
		}
	}
}

// indexable reports whether an index finds all objects with the attribute.
func (a *Attribute) indexable() bool {
	return len(a.Values) > 0 && (a.Label != "" || !slices.Contains(a.Values, ""))
}

// lookup returns the keys that an index has for the values, in no order; false if
// there are more than maxKeys.
func lookup(tree *indexTree, values []string, namespace string, from kube.Key, maxKeys int) (keys []kube.Key, ok bool) {
	ok = true
	for _, value := range values {
		low, end := from, kube.Key("")
		if namespace != "" { // see All
			low, end = max(from, kube.Key(namespace+"/")), kube.Key(namespace+"0")
		}
		tree.AscendGreaterOrEqual(entry{value, low}, func(e entry) bool {
			if e.value != value || end != "" && e.key >= end {
				return false
			}
			keys = append(keys, e.key)
			ok = len(keys) <= maxKeys
			return ok
		})
		if !ok {
			return nil, false
		}
	}
	return keys, true
}
