// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// AddNamespace has a further namespace be watched, from now on. One that is
// watched already is left as it is.
func (i *Informer[T]) AddNamespace(namespace string) error {
	i.scopes.Lock()
	defer i.scopes.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shards[""] != nil || namespace == "" {
		return ErrAllNamespaces
	}
	if i.shards[namespace] == nil {
		s := newShard(i, namespace)
		i.shards[namespace] = s
		i.watchLocked(s)
	}
	return nil
}

// RemoveNamespace has a namespace not be watched any more. Its objects are
// Deleted, which is marked Inferred.
func (i *Informer[T]) RemoveNamespace(namespace string) error {
	i.scopes.Lock()
	defer i.scopes.Unlock()
	i.mu.Lock()
	s := i.shards[namespace]
	all := i.shards[""] != nil
	var stop func()
	if s != nil {
		stop = s.stop
	}
	i.mu.Unlock()
	if all {
		return ErrAllNamespaces
	}
	if s == nil {
		return nil
	}
	if stop != nil {
		stop()
	}
	for _, r := range s.objects {
		s.change(r, nil, entry[T]{typ: Deleted, old: r, inferred: true})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.shards, namespace)
	i.hub.wake()
	i.changeLocked()
	return nil
}

// Namespaces returns the namespaces that are watched, sorted; none if it is all
// of them.
func (i *Informer[T]) Namespaces() []string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.shards[""] != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(i.shards))
}

// A shard holds the objects of one list+watch and is the sink of its reflector,
// whose goroutine alone writes it: it reads without the lock what it writes
// under it.
type shard[T any] struct {
	of        *Informer[T]
	namespace string // "" for all
	gen       uint32 // of the list that is being taken, or the last one
	anew      bool   // RVs prove nothing in it
	key       []byte // a buffer

	// Guarded by of.mu.
	objects   map[string]*record[T]
	bytes     int64 // of the objects
	head      uint64
	synced    bool
	reflector *reflector[*scan.Item] // of the last run; nil if there was none
	stop      func()                 // ends that and waits for it
}

func newShard[T any](of *Informer[T], namespace string) *shard[T] {
	return &shard[T]{of: of, namespace: namespace, objects: map[string]*record[T]{}}
}

// held returns the record of the item's key; nil if there is none.
func (s *shard[T]) held(it *scan.Item) *record[T] {
	s.key = it.AppendKey(s.key[:0])
	return s.objects[string(s.key)]
}

// record makes a record of an item. old may be of the same object.
func (s *shard[T]) record(it *scan.Item, old *record[T]) *record[T] {
	i := s.of
	r := &record[T]{nsLen: uint16(len(it.Namespace)), gen: s.gen, rv: it.RV, how: i.how}
	if old != nil && old.is(it) {
		r.id, r.keyLen = old.id, old.keyLen
	} else {
		id := it.AppendKey(make([]byte, 0, len(it.Namespace)+1+len(it.Name)+len(it.UID)))
		r.keyLen = uint16(len(id))
		r.id = string(append(id, it.UID...))
	}
	keep := i.opts.KeepManagedFields
	raw := it.Append(make([]byte, 0, it.Size(keep)), keep)
	if c := i.opts.Compression; c != nil {
		r.raw = c.Compress(nil, raw)
	} else {
		r.raw = raw
	}
	if i.opts.Decoded {
		d := &decoded[T]{}
		d.object, d.err = i.how.codec.Decode(raw)
		r.decoded = d
	}
	return r
}

// put replaces old, nil for none, by now, nil for none, under the same key.
func (s *shard[T]) putLocked(old, now *record[T]) {
	if old != nil {
		s.bytes -= int64(len(old.raw))
	}
	if now != nil {
		s.bytes += int64(len(now.raw))
	}
	switch {
	case now == nil:
		delete(s.objects, old.key())
	case old != nil && old.id != now.id:
		delete(s.objects, old.key()) // the map would keep the text of the key
		fallthrough
	default:
		s.objects[now.key()] = now
	}
}

// change replaces old by now, and tells what that means. Those who are told may
// sleep until the hub wakes them.
func (s *shard[T]) change(old, now *record[T], e entry[T]) {
	i := s.of
	again := e.typ == Added && old != nil // the name has come back as another object
	keys := make([]any, 0, 4)
	i.mu.RLock()
	indexes := i.indexes
	i.mu.RUnlock()
	for _, x := range indexes {
		keys = append(keys, x.keys(now))
	}
	if again {
		i.metrics.Changed(Deleted)
	}
	i.metrics.Changed(e.typ)
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, x := range i.indexes {
		if n == len(keys) { // a new one
			keys = append(keys, x.keys(now))
		}
		x.replace(old, now, keys[n])
	}
	s.putLocked(old, now)
	if again {
		i.hub.enter(entry[T]{typ: Deleted, old: old, inferred: true})
	}
	i.hub.enter(e)
}

// Head implements sink.
func (s *shard[T]) Head() uint64 { return s.head }

// Begin implements sink.
func (s *shard[T]) Begin(anew bool) {
	s.gen++
	s.anew = anew
}

// Item implements sink. An object that is held in the same version is left as
// it is.
func (s *shard[T]) Item(it *scan.Item) {
	old := s.held(it)
	switch {
	case old == nil:
		now := s.record(it, nil)
		s.change(nil, now, entry[T]{typ: Added, now: now, initial: !s.synced})
	case !old.is(it):
		now := s.record(it, nil)
		s.change(old, now, entry[T]{typ: Added, now: now})
	case old.rv >= it.RV && !s.anew:
		old.gen = s.gen
	default:
		now := s.record(it, old)
		if bytes.Equal(old.raw, now.raw) {
			old.gen = s.gen
			return
		}
		s.change(old, now, entry[T]{typ: Updated, old: old, now: now})
	}
}

// End implements sink: what the list did not have is gone.
func (s *shard[T]) End(list *scan.List) (continued bool) {
	for _, r := range s.objects {
		if r.gen != s.gen && (r.rv <= list.RV || s.anew) {
			s.change(r, nil, entry[T]{typ: Deleted, old: r, inferred: true})
		}
	}
	i := s.of
	i.mu.Lock()
	defer i.mu.Unlock()
	continued = s.head > 0
	if list.RV > s.head || s.anew {
		s.head = list.RV
	}
	s.synced, i.failed, i.lastErr = true, 0, nil
	if !i.synced && i.syncedLocked() {
		i.synced = true
		i.hub.publish(entry[T]{typ: Synced})
	}
	i.hub.wake()
	i.changeLocked()
	return continued
}

// Apply implements sink.
func (s *shard[T]) Apply(typ kube.EventType, it *scan.Item) error {
	if it.RV < s.head {
		return fmt.Errorf("%s of %s/%s at %d, behind %d", typ, it.Namespace, it.Name, it.RV, s.head)
	}
	old := s.held(it)
	switch {
	case old != nil && it.RV <= old.rv: // told again
	case typ == kube.Deleted && old == nil: // told again, or never known
	case typ == kube.Deleted && old.is(it):
		s.change(old, nil, entry[T]{typ: Deleted, old: s.record(it, old)})
	case typ == kube.Deleted: // of a successor that was never known
		s.change(old, nil, entry[T]{typ: Deleted, old: old, inferred: true})
	default:
		now := s.record(it, old)
		e := entry[T]{typ: Updated, old: old, now: now}
		if old == nil || !old.is(it) {
			e.typ, e.old = Added, nil
		}
		s.change(old, now, e)
	}
	s.advance(it.RV)
	return nil
}

// Bookmark implements sink.
func (s *shard[T]) Bookmark(rv uint64, _ *scan.Item) { s.advance(rv) }

func (s *shard[T]) advance(rv uint64) {
	i := s.of
	i.mu.Lock()
	defer i.mu.Unlock()
	s.head = max(s.head, rv)
	i.changeLocked()
}

// Flush implements sink. What is told is visible at once; subscribers that sleep
// are woken here.
func (s *shard[T]) Flush() {
	i := s.of
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hub.wake()
}
