// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/btree"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	// minIndexedObjects is the number of objects from which on indexes are
	// made: fewer are scanned as fast.
	minIndexedObjects = 500
	// maxListIndexes bounds the indexes of a timeline. Each costs the writer a
	// few microseconds per event, and about 150 bytes per object.
	maxListIndexes = 8
	// minIndexRequests is how often an attribute is requested before it gets an
	// index.
	minIndexRequests = 2
	// maxIndexIdle is how long an index is kept without a request.
	maxIndexIdle = 10 * time.Minute
	// minIndexIdle is how long an index without a request is kept when another
	// needs its room.
	minIndexIdle = time.Minute
	// maxRequested bounds the attributes whose requests are counted.
	maxRequested = 64
)

// A listIndex finds the keys of the live objects by their values of an
// attribute. The writer owns it; views share clones of its tree.
type listIndex struct {
	attribute Attribute // without values
	tree      *indexTree
	dirty     bool         // the tree has changed since it was cloned for a view
	requested atomic.Int64 // when it was requested last, in Unix seconds; written by readers
}

// An entry has strings of its own: substrings of an object's text would keep that
// in memory after the object has changed.
type entry struct {
	value string
	key   kube.Key
}

type indexTree = btree.BTreeG[entry]

func newIndexTree() *indexTree {
	return btree.NewG(32, func(a, b entry) bool {
		return a.value < b.value || a.value == b.value && a.key < b.key
	})
}

// A publishedIndex is the part of a listIndex that a view has.
type publishedIndex struct {
	*listIndex
	shared *indexTree // a clone that never changes
}

// idle reports whether there was no request for so long.
func (x *listIndex) idle(long time.Duration) bool {
	return time.Since(time.Unix(x.requested.Load(), 0)) > long
}

// value returns an object's value of the attribute, false if it has none; the
// object may be nil. An absent field is not indexed, since most objects may lack
// it.
func (x *listIndex) value(o *scan.Object) (value string, ok bool) {
	switch a := &x.attribute; {
	case o == nil:
		return "", false
	case a.Label != "":
		return o.Labels.Lookup(a.Label)
	default:
		value = a.FieldValue(o)
		return value, value != ""
	}
}

// change replaces a version of an object by another; either may be nil.
func (x *listIndex) change(old, now *scan.Object) {
	before, was := x.value(old)
	after, is := x.value(now)
	if was == is && before == after {
		return
	}
	if was {
		x.tree.Delete(entry{before, old.Key})
	}
	if is {
		x.tree.ReplaceOrInsert(entry{strings.Clone(after), kube.Key(strings.Clone(string(now.Key)))})
	}
	x.dirty = true
}

// listIndexes are the indexes of a timeline, and the requests for attributes that
// have none.
type listIndexes struct {
	minObjects int // minIndexedObjects, except in tests

	// byName is guarded by Timeline.mu. The map is replaced, never changed,
	// since views share it.
	byName map[attributeName]publishedIndex

	mu       sync.Mutex // guards requests
	requests map[attributeName]*indexRequests
}

// indexRequests counts the requests for an attribute without an index.
type indexRequests struct {
	count    int
	last     time.Time
	building bool
}

// change is [listIndex.change] for all indexes; the caller holds Timeline.mu.
func (x *listIndexes) change(old, now *scan.Object) {
	for _, p := range x.byName {
		p.change(old, now)
	}
}

// publish returns the indexes of a new view; the caller holds Timeline.mu.
func (x *listIndexes) publish() map[attributeName]publishedIndex {
	cloned := false
	for name, p := range x.byName {
		if !p.dirty {
			continue
		}
		if !cloned {
			x.byName, cloned = maps.Clone(x.byName), true
		}
		p.shared, p.dirty = p.tree.Clone(), false
		x.byName[name] = p
	}
	return x.byName
}

// expire drops the idle indexes; the caller holds Timeline.mu.
func (x *listIndexes) expire(long time.Duration) {
	idle := func(_ attributeName, p publishedIndex) bool { return p.idle(long) }
	for name, p := range x.byName {
		if idle(name, p) {
			x.byName = maps.Clone(x.byName)
			maps.DeleteFunc(x.byName, idle)
			return
		}
	}
}

// size estimates the memory of the indexes; the caller holds Timeline.mu.
func (x *listIndexes) size() (bytes int64) {
	const each = 150 // an entry, its strings, and the room that the tree leaves
	for _, p := range x.byName {
		bytes += each * int64(p.tree.Len())
	}
	return bytes
}

// request counts a request for an attribute without an index, and reports whether
// the caller is to build one.
func (x *listIndexes) request(name attributeName) (build bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	r := x.requests[name]
	if r == nil {
		if len(x.requests) >= maxRequested {
			maps.DeleteFunc(x.requests, func(_ attributeName, r *indexRequests) bool {
				return !r.building && now.Sub(r.last) > minIndexIdle
			})
		}
		if len(x.requests) >= maxRequested {
			return false
		}
		if x.requests == nil {
			x.requests = map[attributeName]*indexRequests{}
		}
		r = &indexRequests{}
		x.requests[attributeName{name.kind, strings.Clone(name.name)}] = r
	}
	r.last = now
	if r.count++; r.building || r.count < minIndexRequests {
		return false
	}
	r.building = true
	return true
}

// built ends a build that request asked for.
func (x *listIndexes) built(name attributeName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.requests, name)
}

// buildIndex builds an index from the current view and adds it. The writer waits
// only while the events since that view are entered.
func (t *Timeline) buildIndex(a *Attribute) {
	name := a.name()
	defer t.indexes.built(name)
	v := t.View()
	if len(v.indexes) >= maxListIndexes && !slices.ContainsFunc(slices.Collect(maps.Values(v.indexes)), func(p publishedIndex) bool { return p.idle(minIndexIdle) }) {
		return // there would be no room
	}
	x := &listIndex{attribute: Attribute{Label: a.Label, Field: a.Field, FieldValue: a.FieldValue}, tree: newIndexTree()}
	for o := range v.All("", "") {
		x.change(nil, o)
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	n, all := &t.next, &t.indexes
	if n.epoch != v.epoch || n.first > v.end() || n.closed {
		return // the log does not continue the view
	}
	if len(all.byName) >= maxListIndexes {
		all.expire(minIndexIdle)
	}
	if _, exists := all.byName[name]; exists || len(all.byName) >= maxListIndexes {
		return
	}
	for _, e := range n.log[v.end()-n.first:] {
		now := e.Object
		if e.Type == kube.Deleted {
			now = nil
		}
		x.change(e.Prev, now)
	}
	x.requested.Store(time.Now().Unix())
	byName := maps.Clone(all.byName)
	if byName == nil {
		byName = map[attributeName]publishedIndex{}
	}
	byName[name] = publishedIndex{listIndex: x} // publish clones the tree, since it is dirty
	all.byName, x.dirty = byName, true
	if !t.dirty { // otherwise the next Flush publishes
		t.publish()
	}
}
