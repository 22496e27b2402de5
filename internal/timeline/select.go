// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"iter"
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
	// minIndexed is the number of objects from which on indexes are made: fewer
	// are as well scanned.
	minIndexed = 500
	// mostIndexes bounds the indexes of a timeline. Each costs the writer a few
	// microseconds per event, and about 150 bytes per object.
	mostIndexes = 8
	// asksForIndex is how often an attribute is asked for until there is an index.
	asksForIndex = 2
	// indexUnused is for how long an index is kept that nobody asks for.
	indexUnused = 10 * time.Minute
	// spareIndex is for how long nobody has asked for one that makes room for
	// another.
	spareIndex = time.Minute
	// mostAsked bounds what is remembered of attributes that were asked for.
	mostAsked = 64
	// worthWhile: an index is used where it leads to less than this part of the
	// objects. To find one by its key costs about as much as to scan so many.
	worthWhile = 8
)

// id tells attributes apart.
func (a *Attribute) id() string {
	if a.Label != "" {
		return "label " + a.Label
	}
	return "field " + a.Field
}

// value returns the value of an object, which may be nil; false if it has none. A
// field that is not there is no value to find objects by: most lack it.
func (a *Attribute) value(o *scan.Object) (value string, ok bool) {
	switch {
	case o == nil:
		return "", false
	case a.Label != "":
		return o.Labels.Lookup(a.Label)
	}
	value = a.Of(o)
	return value, value != ""
}

// selects reports whether an index by the attribute finds what has one of its
// values.
func (a *Attribute) selects() bool {
	return len(a.Values) > 0 && (a.Label != "" || !slices.Contains(a.Values, ""))
}

// An entry of an index has strings of its own: those of an object would keep
// its text alive when there is a newer version.
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

// A valueIndex finds the keys of the live objects by their values of an
// attribute. It is the writer's; views share clones of the tree.
type valueIndex struct {
	of    Attribute // without values
	tree  *indexTree
	dirty bool         // the tree has changed since it was cloned for a view
	used  atomic.Int64 // when it was last asked for, in Unix seconds; of readers
}

// A sharedIndex is what views have of one.
type sharedIndex struct {
	*valueIndex
	shared *indexTree // a clone, never changed
}

// unused reports whether nobody has asked for the index in so long.
func (x *valueIndex) unused(long time.Duration) bool {
	return time.Since(time.Unix(x.used.Load(), 0)) > long
}

// change enters an object in the place of its version before; either may be nil.
func (x *valueIndex) change(old, now *scan.Object) {
	before, was := x.of.value(old)
	after, is := x.of.value(now)
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

// attributes are those of a timeline that have an index, and those that are asked
// for without one.
type attributes struct {
	least int // minIndexed, but for tests

	// Guarded by Timeline.mu; byName is never changed, but replaced.
	byName map[string]sharedIndex

	mu    sync.Mutex // guards asked; nothing else is locked under it
	asked map[string]*ask
}

// An ask is how an attribute without an index is asked for.
type ask struct {
	times    int
	last     time.Time
	building bool
}

// change keeps all up to date; the caller holds Timeline.mu.
func (x *attributes) change(old, now *scan.Object) {
	for _, p := range x.byName {
		p.change(old, now)
	}
}

// publish returns what a new view shares; the caller holds Timeline.mu.
func (x *attributes) publish() map[string]sharedIndex {
	fresh := false
	for name, p := range x.byName {
		if !p.dirty {
			continue
		}
		if !fresh {
			x.byName, fresh = maps.Clone(x.byName), true
		}
		p.shared, p.dirty = p.tree.Clone(), false
		x.byName[name] = p
	}
	return x.byName
}

// expire drops those that are not asked for; the caller holds Timeline.mu.
func (x *attributes) expire(long time.Duration) {
	unused := func(_ string, p sharedIndex) bool { return p.unused(long) }
	for name, p := range x.byName {
		if unused(name, p) {
			x.byName = maps.Clone(x.byName)
			maps.DeleteFunc(x.byName, unused)
			return
		}
	}
}

// size is about what they take; the caller holds Timeline.mu.
func (x *attributes) size() (bytes int64) {
	const each = 150 // an entry, its texts, and the room that the tree leaves
	for _, p := range x.byName {
		bytes += each * int64(p.tree.Len())
	}
	return bytes
}

// reset forgets all; the caller holds Timeline.mu.
func (x *attributes) reset() { x.byName = nil }

// note counts that an attribute without an index is asked for, and reports
// whether the caller is to build one.
func (x *attributes) note(name string) (build bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	a := x.asked[name]
	if a == nil {
		if len(x.asked) >= mostAsked {
			maps.DeleteFunc(x.asked, func(_ string, a *ask) bool { return !a.building && now.Sub(a.last) > time.Minute })
		}
		if len(x.asked) >= mostAsked {
			return false
		}
		if x.asked == nil {
			x.asked = map[string]*ask{}
		}
		a = &ask{}
		x.asked[strings.Clone(name)] = a
	}
	a.last = now
	if a.times++; a.building || a.times < asksForIndex {
		return false
	}
	a.building = true
	return true
}

// built ends what note began.
func (x *attributes) built(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.asked, name)
}

// Select yields the objects of a namespace, "" for all, in list order, beginning
// with the first whose key is at least from: all of them that have the attribute
// with one of its values, and perhaps others. nil selects nothing in particular.
//
// An attribute that is asked for again gets an index, which the caller that asks
// for it builds. A snapshot of the past has none.
func (s *Snapshot) Select(namespace string, from kube.Key, a *Attribute) iter.Seq[*scan.Object] {
	if a == nil || !a.selects() || s.timeline == nil || s.Len() < s.timeline.attributes.least {
		return s.All(namespace, from)
	}
	shared, ok := s.indexes[a.id()]
	if !ok {
		if s.timeline.attributes.note(a.id()) {
			s.timeline.buildIndex(a)
		}
		return s.All(namespace, from)
	}
	shared.used.Store(time.Now().Unix())
	keys, ok := lookup(shared.shared, a.Values, namespace, from, s.Len()/worthWhile)
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

// lookup returns the keys that an index has for the values, in no order; false
// if they are more than most.
func lookup(tree *indexTree, values []string, namespace string, from kube.Key, most int) (keys []kube.Key, ok bool) {
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
			ok = len(keys) <= most
			return ok
		})
		if !ok {
			return nil, false
		}
	}
	return keys, true
}

// buildIndex makes an index of the current view and hands it to the writer. The
// writer does not wait for it, but for what happened meanwhile to be entered.
func (t *Timeline) buildIndex(a *Attribute) {
	id := a.id()
	defer t.attributes.built(id)
	v := t.View()
	if len(v.indexes) >= mostIndexes && !slices.ContainsFunc(slices.Collect(maps.Values(v.indexes)), func(x sharedIndex) bool { return x.unused(spareIndex) }) {
		return // there would be no room
	}
	one := &valueIndex{of: Attribute{Label: a.Label, Field: a.Field, Of: a.Of}, tree: newIndexTree()}
	for o := range v.All("", "") {
		one.change(nil, o)
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	n, x := &t.next, &t.attributes
	if n.epoch != v.epoch || n.first > v.end() || n.closed {
		return // too much has happened
	}
	if len(x.byName) >= mostIndexes {
		x.expire(spareIndex)
	}
	if _, exists := x.byName[id]; exists || len(x.byName) >= mostIndexes {
		return
	}
	for _, e := range n.log[v.end()-n.first:] {
		now := e.Object
		if e.Type == kube.Deleted {
			now = nil
		}
		one.change(e.Prev, now)
	}
	one.used.Store(time.Now().Unix())
	byName := maps.Clone(x.byName)
	if byName == nil {
		byName = map[string]sharedIndex{}
	}
	byName[id] = sharedIndex{one, nil} // which publish shares: it is dirty
	x.byName, one.dirty = byName, true
	if !t.dirty { // else the writer will
		t.publish()
	}
}
