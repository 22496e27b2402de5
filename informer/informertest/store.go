// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"slices"
	"sort"
	"strings"
)

// A collection is the objects of one resource and the log of their changes. The
// server's mu guards it.
type collection struct {
	Resource
	json, metadata *JSON

	objects []version // by key
	log     []change
	dropped int // changes that are no longer in the log
	// compacted is the lowest resourceVersion to watch from.
	compacted uint64
	// progress is the resourceVersion of the last consistent read, which the watch
	// cache learns in addition to those of its own resource.
	progress uint64
}

// A version is an object at one resourceVersion.
type version struct {
	*Object
	rv uint64
}

// A change is one entry of the log.
type change struct {
	rv     uint64
	object *Object // nil for a deletion
	prev   *Object // nil for a creation
	prevRV uint64
}

func newCollection(r Resource, rv uint64) *collection {
	return &collection{Resource: r, json: NewJSON(r), metadata: NewMetadataJSON(), compacted: rv, progress: rv}
}

// object returns a new object of the collection.
func (c *collection) object(namespace, name string, content Content) *Object {
	o := &Object{Key: c.key(namespace, name), Name: name, Content: content, of: c.Resource}
	if c.Namespaced {
		o.Namespace = namespace
	}
	return o
}

func (c *collection) find(key string) (i int, found bool) {
	return slices.BinarySearchFunc(c.objects, key, func(v version, key string) int { return strings.Compare(v.Key, key) })
}

// put makes o the newest version of its object.
func (c *collection) put(o *Object, rv uint64) {
	i, found := c.find(o.Key)
	if !found {
		c.objects = slices.Insert(c.objects, i, version{o, rv})
		c.log = append(c.log, change{rv: rv, object: o})
		return
	}
	c.replace(i, o, rv)
}

// replace gives the object at a place another version.
func (c *collection) replace(i int, o *Object, rv uint64) {
	old := c.objects[i]
	c.log = append(c.log, change{rv: rv, object: o, prev: old.Object, prevRV: old.rv})
	c.objects[i] = version{o, rv}
}

func (c *collection) remove(key string, rv uint64) bool {
	i, found := c.find(key)
	if !found {
		return false
	}
	old := c.objects[i]
	c.log = append(c.log, change{rv: rv, prev: old.Object, prevRV: old.rv})
	c.objects = slices.Delete(c.objects, i, i+1)
	return true
}

// now returns the newest versions, by key.
func (c *collection) now() []version { return slices.Clone(c.objects) }

// at returns the versions at an earlier resourceVersion, by key; it may not be
// below c.compacted.
func (c *collection) at(rv uint64) []version {
	state := map[string]version{}
	for _, v := range c.objects {
		state[v.Key] = v
	}
	for i := len(c.log) - 1; i >= 0 && c.log[i].rv > rv; i-- {
		if e := c.log[i]; e.prev == nil {
			delete(state, e.object.Key)
		} else {
			state[e.prev.Key] = version{e.prev, e.prevRV}
		}
	}
	all := make([]version, 0, len(state))
	for _, v := range state {
		all = append(all, v)
	}
	slices.SortFunc(all, byKey)
	return all
}

func byKey(a, b version) int { return strings.Compare(a.Key, b.Key) }

// position returns the position, among all changes since the start, of the first one
// after a resourceVersion.
func (c *collection) position(rv uint64) int {
	return c.dropped + sort.Search(len(c.log), func(i int) bool { return c.log[i].rv > rv })
}

// bookmark returns the resourceVersion up to which a watch cache knows that it
// has everything.
func (c *collection) bookmark() uint64 {
	if n := len(c.log); n > 0 {
		return max(c.progress, c.log[n-1].rv)
	}
	return max(c.progress, c.compacted)
}
