// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A historySink is the sink of a reflector while the resource has no timeline. It
// applies events to the history as a timeline applies them to its state, without
// objects in memory. After a write error it ignores everything.
type historySink struct {
	w        *writer
	now      func() time.Time
	versions *versionCache
	failed   func(error)
	define   func() string // returns the definition of a custom resource
	same     func() error  // fails if the API server belongs to another cluster
	diverged func() bool   // reports whether the upstream has another history
	listed   func()        // is called after each recorded list
	advanced func()        // is called when the upstream has sent what follows the record

	err        error
	definition string // of the current list
}

// Head implements watchcache.Sink.
func (s *historySink) Head() uint64 { return s.w.position().RV }

// Holds implements watchcache.Sink. An object that cannot be read counts as one: then the
// upstream proves nothing, and a list follows.
func (s *historySink) Holds(key kube.Key) bool {
	v, err := s.last(key)
	return err != nil || v.rv != 0
}

// Begin implements watchcache.Sink.
func (s *historySink) Begin() { s.definition = s.define() }

// Replace implements watchcache.Sink. Whether the history has diverged is known to the
// resource's continuity, also from an earlier reflector.
func (s *historySink) Replace(list *scan.List, _ bool) (continued bool) {
	s.versions.clear()
	if s.err != nil {
		return false
	}
	if s.err = s.same(); s.err == nil {
		continued, s.err = s.w.take(list, s.definition, s.diverged(), s.now)
	}
	if s.check(); s.err == nil {
		s.listed()
	}
	return continued
}

// Apply implements watchcache.Sink.
func (s *historySink) Apply(typ kube.EventType, o *scan.Object) error {
	if s.err != nil {
		return s.err
	}
	prev, err := s.last(o.Key)
	if err == nil {
		typ, err = timeline.Effect(s.Head(), prev.rv, typ, o)
		if errors.Is(err, timeline.ErrOutOfOrder) {
			return err
		}
	}
	now := s.now()
	switch {
	case err != nil:
		s.err = err
	case typ == kube.Bookmark:
		s.err = s.w.add(nil, o.RV, now)
	case typ != "":
		s.versions.set(o, typ == kube.Deleted)
		s.err = s.w.add([]history.Event{{Type: typ, Object: o, Prev: prev.object, At: now}}, o.RV, now)
	}
	if s.check(); s.err == nil {
		s.advanced()
	}
	return s.err
}

// last returns the last version of an object.
func (s *historySink) last(key kube.Key) (version, error) {
	if v, ok := s.versions.get(key); ok {
		return v, nil
	}
	// The version is not pending: the cache holds all pending versions.
	o, err := s.w.newest(key)
	if o == nil || err != nil {
		return version{}, err
	}
	return version{o.RV, o}, nil
}

// Bookmark implements watchcache.Sink.
func (s *historySink) Bookmark(rv uint64, o *scan.Object) {
	if s.err == nil {
		s.err = s.w.bookmark(rv, o, s.now())
		s.check()
		s.advanced()
	}
}

// Flush implements watchcache.Sink. The writer flushes by itself.
func (s *historySink) Flush() {}

// check reports an error. The end of recording is not an error.
func (s *historySink) check() {
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		s.failed(s.err)
	}
}

// A version is the last version of an object; its RV is 0 if there is none.
type version struct {
	rv     uint64
	object *scan.Object
}

// maxVersionBytes is about the maximum size of a versionCache. The cache has to hold at
// least the pending versions.
const maxVersionBytes = 2 * maxPendingBytes

// A versionCache holds the last versions of recently changed objects, so that they are
// not read from the disk when they change again. When the younger half is full, the
// older one is dropped.
type versionCache struct {
	young, old map[kube.Key]version
	size       int // of young, in bytes
}

func (c *versionCache) get(key kube.Key) (version, bool) {
	v, ok := c.young[key]
	if !ok {
		v, ok = c.old[key]
	}
	return v, ok
}

func (c *versionCache) set(o *scan.Object, deleted bool) {
	if c.size += len(o.JSON) + timeline.EventOverhead; c.size > maxVersionBytes/2 || c.young == nil {
		c.young, c.old, c.size = map[kube.Key]version{}, c.young, len(o.JSON)+timeline.EventOverhead
	}
	v := version{o.RV, o}
	if deleted {
		v = version{}
	}
	c.young[o.Key] = v
}

func (c *versionCache) clear() { *c = versionCache{} }
