// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"fmt"
	"slices"
	"strconv"
)

// collection returns the collection of a resource, and panics if there is none: that
// is a mistake of the test.
func (s *Server) collection(resource string) *collection {
	for _, c := range s.collections {
		if c.FullName() == resource {
			return c
		}
	}
	panic(fmt.Sprintf("informertest: the server has no resource %q", resource))
}

// Put creates or changes an object and returns its new resourceVersion. The object is
// JSON as a string or []byte, or a value that encoding/json encodes. It needs a name, and
// a namespace if the resource is namespaced. Put sets kind, apiVersion and
// resourceVersion, and a uid if there is none. Put panics if the resource or the object
// is invalid.
func (s *Server) Put(resource string, o any) (rv uint64) {
	c := s.collection(resource)
	doc, err := parseDocument(o)
	if err == nil && c.Namespaced && doc.namespace() == "" {
		err = fmt.Errorf("an object of %s needs a namespace: %s", c.FullName(), doc.name())
	}
	if err != nil {
		panic("informertest: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putLocked(c, doc)
}

func (s *Server) putLocked(c *collection, doc *document) uint64 {
	s.rv += s.opts.Step
	if doc.uid() == "" {
		doc.set("uid", s.uidLocked(c, c.key(doc.namespace(), doc.name())))
	}
	c.put(c.object(doc.namespace(), doc.name(), doc), s.rv)
	s.wakeLocked()
	return s.rv
}

// uidLocked returns the UID of an object that exists, or a new one.
func (s *Server) uidLocked(c *collection, key string) string {
	if i, found := c.find(key); found {
		return c.objects[i].attributes().uid
	}
	s.made++
	return fmt.Sprintf("%08x-0000-4000-8000-000000000000", s.made)
}

// A Named is an object for [Server.Fill].
type Named struct {
	Namespace, Name string
	Content         Content
}

// Fill gives a resource without objects its first ones. Each raises the
// resourceVersion by one; the history begins after them.
func (s *Server) Fill(resource string, all []Named) {
	c := s.collection(resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range all {
		s.rv++
		o := c.object(n.Namespace, n.Name, n.Content)
		c.objects = append(c.objects, version{o, s.rv})
	}
	slices.SortFunc(c.objects, byKey)
	for _, c := range s.collections {
		c.compacted, c.progress = s.rv, s.rv
	}
}

// Touch gives objects new resourceVersions, one after the other, and returns the last.
// Nothing else changes. It panics if one does not exist.
func (s *Server) Touch(resource string, keys ...string) (rv uint64) {
	c := s.collection(resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		i, found := c.find(key)
		if !found {
			panic(fmt.Sprintf("informertest: there is no %s %q to change", resource, key))
		}
		s.rv += s.opts.Step
		c.replace(i, c.objects[i].Object, s.rv)
	}
	s.wakeLocked()
	return s.rv
}

// Delete deletes objects, given as "namespace/name" or "name", whatever their
// finalizers, all at one resourceVersion, which it returns. It panics if one does not
// exist.
func (s *Server) Delete(resource string, keys ...string) (rv uint64) {
	c := s.collection(resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv += s.opts.Step
	for _, key := range keys {
		if !c.remove(key, s.rv) {
			panic(fmt.Sprintf("informertest: there is no %s %q to delete", resource, key))
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
		all[v.Key] = string(v.JSON(strconv.FormatUint(v.rv, 10)))
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

// Prepare encodes all objects of a resource in a format, which the first response
// would do otherwise.
func (s *Server) Prepare(resource string, f Format) error {
	c := s.collection(resource)
	s.mu.Lock()
	all := c.now()
	s.mu.Unlock()
	for _, v := range all {
		if _, err := v.encoding(f, v.rv); err != nil {
			return err
		}
	}
	return nil
}
