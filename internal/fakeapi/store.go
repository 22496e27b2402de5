// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// A collection is the objects of one resource and the log of their changes. The
// server's mu guards it.
type collection struct {
	Resource
	formats [formats]encoder

	objects []*slot // by key
	log     []change
	dropped int // changes that are no longer in the log
	// compacted is the lowest resourceVersion to watch from.
	compacted uint64
	// progress is the resourceVersion of the last consistent read, which the watch
	// cache learns in addition to those of its own resource.
	progress uint64
}

// A slot holds an object while it exists.
type slot struct {
	key string
	version
	deleted bool
}

// A version is an object at one resourceVersion.
type version struct {
	*object
	rv uint64
}

// A change is one entry of the log.
type change struct {
	rv     uint64
	object *object // nil for a deletion
	prev   *object // nil for a creation
	prevRV uint64
}

func newCollection(r Resource, rv uint64) *collection {
	c := &collection{Resource: r, compacted: rv, progress: rv}
	c.formats = encodersOf(c)
	return c
}

func (c *collection) find(key string) (i int, found bool) {
	return slices.BinarySearchFunc(c.objects, key, func(s *slot, key string) int { return strings.Compare(s.key, key) })
}

// put makes o the newest version of its object.
func (c *collection) put(o *object, rv uint64) {
	i, found := c.find(o.key)
	if !found {
		c.objects = slices.Insert(c.objects, i, &slot{key: o.key, version: version{o, rv}})
		c.log = append(c.log, change{rv: rv, object: o})
		return
	}
	c.replace(c.objects[i], o, rv)
}

func (c *collection) replace(s *slot, o *object, rv uint64) {
	c.log = append(c.log, change{rv: rv, object: o, prev: s.object, prevRV: s.rv})
	s.version = version{o, rv}
}

func (c *collection) remove(key string, rv uint64) bool {
	i, found := c.find(key)
	if !found {
		return false
	}
	s := c.objects[i]
	s.deleted = true
	c.log = append(c.log, change{rv: rv, prev: s.object, prevRV: s.rv})
	c.objects = slices.Delete(c.objects, i, i+1)
	return true
}

// now returns the newest versions, by key.
func (c *collection) now() []version {
	all := make([]version, len(c.objects))
	for i, s := range c.objects {
		all[i] = s.version
	}
	return all
}

// at returns the versions at an earlier resourceVersion, by key; it may not be
// below c.compacted.
func (c *collection) at(rv uint64) []version {
	state := map[string]version{}
	for _, v := range c.now() {
		state[v.key] = v
	}
	for i := len(c.log) - 1; i >= 0 && c.log[i].rv > rv; i-- {
		if e := c.log[i]; e.prev == nil {
			delete(state, e.object.key)
		} else {
			state[e.prev.key] = version{e.prev, e.prevRV}
		}
	}
	all := make([]version, 0, len(state))
	for _, v := range state {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b version) int { return strings.Compare(a.key, b.key) })
	return all
}

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

// collection returns the collection of a resource, and panics if there is none: that
// is a mistake of the test.
func (s *Server) collection(resource string) *collection {
	for _, c := range s.collections {
		if c.FullName() == resource {
			return c
		}
	}
	panic(fmt.Sprintf("fakeapi: the server has no resource %q", resource))
}

// Resources returns the resources that the server serves.
func (s *Server) Resources() []Resource { return s.opts.Resources }

// Put creates or changes an object and returns its new resourceVersion. The object is
// JSON as a string or []byte, or a value that encoding/json encodes. It needs a name;
// Put sets kind, apiVersion and resourceVersion, and a uid if there is none. Put panics
// if the resource or the object is invalid.
func (s *Server) Put(resource string, o any) (rv uint64) {
	c := s.collection(resource)
	doc, err := parseDocument(o)
	if err != nil {
		panic("fakeapi: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(c, doc)
}

func (s *Server) putLocked(c *collection, doc *document) uint64 {
	s.rv += s.opts.Step
	if doc.uid() == "" {
		doc.setUID(s.uidLocked(c, doc.key(c.Namespaced)))
	}
	c.put(newObject(c, doc), s.rv)
	s.wakeLocked()
	return s.rv
}

// uidLocked returns the UID of an object that exists, or a new one.
func (s *Server) uidLocked(c *collection, key string) string {
	if i, found := c.find(key); found {
		return c.objects[i].attributes(c).uid
	}
	s.uids++
	return fmt.Sprintf("%08x-0000-4000-8000-000000000000", s.uids)
}

// Delete deletes objects, given as "namespace/name" or "name", all at one
// resourceVersion, which it returns. It panics if one does not exist.
func (s *Server) Delete(resource string, keys ...string) (rv uint64) {
	c := s.collection(resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv += s.opts.Step
	for _, key := range keys {
		if !c.remove(key, s.rv) {
			panic(fmt.Sprintf("fakeapi: there is no %s %q to delete", resource, key))
		}
	}
	s.wakeLocked()
	return s.rv
}

// Get returns the JSON of an object, "" if there is none.
func (s *Server) Get(resource, key string) string { return s.All(resource)[key] }

// All returns the JSON of all objects of a resource by their keys.
func (s *Server) All(resource string) map[string]string {
	c := s.collection(resource)
	s.mu.Lock()
	versions := c.now()
	s.mu.Unlock()
	all := map[string]string{}
	for _, v := range versions {
		all[v.key] = string(v.json(c))
	}
	return all
}

// RV returns the newest resourceVersion.
func (s *Server) RV() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rv
}

// Advance raises the resourceVersion, as writes to other resources do, and
// returns it.
func (s *Server) Advance(n uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv += n
	s.wakeLocked()
	return s.rv
}

// Compact removes the history before a resourceVersion: a watch from an earlier one, or
// an exact list at it, gets 410. Open watches are not affected.
func (s *Server) Compact(rv uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		c.compacted = max(c.compacted, rv)
	}
}

// Expire raises the resourceVersion by one, compacts and ends the open watches
// with 410, so that none can resume. It returns the resourceVersion.
func (s *Server) Expire() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	for _, c := range s.collections {
		c.compacted = s.rv
		c.dropped, c.log = c.dropped+len(c.log), nil
	}
	s.endLocked(endExpired)
	return s.rv
}

// A selection selects the objects of a resource for a request.
type selection struct {
	namespace string
	labels    labels.Selector // nil selects everything
	fields    fields.Selector // nil selects everything
}

func (sel *selection) matches(c *collection, o *object) bool {
	if o == nil || sel.namespace != "" && o.namespace != sel.namespace {
		return false
	}
	if sel.labels == nil && sel.fields == nil {
		return true
	}
	a := o.attributes(c)
	return (sel.labels == nil || sel.labels.Matches(a.labels)) && (sel.fields == nil || sel.fields.Matches(a))
}
