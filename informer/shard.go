// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A shard holds the objects of one namespace, or of all, and is the sink of
// their reflector. Only that reflector's goroutine writes to it, with the lock held; it
// reads its own writes without the lock.
type shard[T any] struct {
	of        *Informer[T]
	namespace string // "" for all
	added     bool   // by AddNamespace
	listID    uint32 // of the current list, or the last one
	overwrite bool   // of that list, see reflector.Sink
	key       []byte // buffer of lookup

	// Guarded by of.mu.
	objects   map[string]*record[T]
	bytes     int64 // stored, of all objects
	head      uint64
	synced    bool
	failures  int                              // in a row, without a list in between
	lastErr   error                            // the last one of them
	refused   error                            // the refusal that ended the reflector of an added namespace
	reflector *reflector.Reflector[*scan.Item] // of the last run; nil before the first
	stop      func()                           // ends the reflector and waits for it
	removed   bool                             // no run may watch it any more
}

func newShard[T any](of *Informer[T], namespace string) *shard[T] {
	return &shard[T]{of: of, namespace: namespace, objects: map[string]*record[T]{}}
}

// AddNamespace starts to watch another namespace; if the informer does not run, its next
// run does. It does not wait for the list: [Informer.WaitSynced] with its name does. If the
// API server refuses it, its watch ends, and the others go on: WaitSynced and
// [Status].Refused have the reason, and the namespace stays refused until AddNamespace or
// Run is called again. A namespace that
// is already watched stays as it is. If the informer watches all namespaces,
// AddNamespace returns [ErrAllNamespaces].
func (i *Informer[T]) AddNamespace(namespace string) error {
	i.namespacesMu.Lock()
	defer i.namespacesMu.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shards[""] != nil {
		return ErrAllNamespaces
	}
	if namespace == "" || !isSegment(namespace) {
		return fmt.Errorf("informer: a namespace cannot have the name %q", namespace)
	}
	s := i.shards[namespace]
	if s == nil {
		s = newShard(i, namespace)
		s.added = true
		i.shards[namespace] = s
	} else if s.refused == nil {
		return nil
	}
	i.watchLocked(s)
	return nil
}

// RemoveNamespace stops watching a namespace, waits until its watch has ended,
// and deletes its objects from the copy: subscribers receive Deleted events
// with Inferred set. A namespace that is not watched is ignored. If the informer
// watches all namespaces, it returns [ErrAllNamespaces]. Functions of [Metrics] and of
// indexes must not call it: it would wait for them.
func (i *Informer[T]) RemoveNamespace(namespace string) error {
	i.namespacesMu.Lock()
	defer i.namespacesMu.Unlock()
	i.mu.Lock()
	s := i.shards[namespace]
	all := i.shards[""] != nil
	var stop func()
	if s != nil {
		stop, s.removed = s.stop, true
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
		s.replace(r, nil, entry[T]{typ: Deleted, old: r, inferred: true})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.shards, namespace)
	i.syncLocked()
	i.events.wake()
	i.changeLocked()
	return nil
}

// Namespaces returns the namespaces that are watched, sorted, and whether the informer
// watches all namespaces instead.
func (i *Informer[T]) Namespaces() (names []string, all bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.shards[""] != nil {
		return nil, true
	}
	return slices.Sorted(maps.Keys(i.shards)), false
}

// lookup returns the record with the item's key; nil if there is none.
func (s *shard[T]) lookup(it *scan.Item) *record[T] {
	s.key = it.AppendKey(s.key[:0])
	return s.objects[string(s.key)]
}

// newRecord makes a record of an item. If old is of the same object, they share
// the text of the key.
func (s *shard[T]) newRecord(it *scan.Item, old *record[T]) *record[T] {
	i := s.of
	r := &record[T]{namespaceLen: uint16(len(it.Namespace)), listID: s.listID, rv: it.RV, format: i.format}
	if old != nil && old.sameObject(it) {
		r.id, r.keyLen = old.id, old.keyLen
	} else {
		id, keyLen := it.ID()
		r.id, r.keyLen = id, uint16(keyLen)
	}
	keep := i.opts.KeepManagedFields
	raw := it.Append(make([]byte, 0, it.Size(keep)), keep)
	if c := i.opts.Compression; c != nil {
		r.raw = c.Compress(nil, raw)
	} else {
		r.raw = raw
	}
	i.format.mutations.stored(r)
	if i.opts.Decoded {
		d := &decoded[T]{}
		d.object, d.err = i.format.codec.Decode(raw)
		r.decoded = d
	}
	return r
}

// putLocked replaces old by now, which have the same key. Either may be nil.
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
		delete(s.objects, old.key()) // assigning would keep the old text of the key alive
		fallthrough
	default:
		s.objects[now.key()] = now
	}
}

// replace replaces old by now, either of which may be nil, and appends e to the
// log. Subscribers may not be woken before the log's next wake.
func (s *shard[T]) replace(old, now *record[T], e entry[T]) {
	i := s.of
	recreated := e.typ == Added && old != nil // the name now is of another object
	keys := make([]any, 0, 4)
	var failures []error
	find := func(x indexer[T]) {
		found, err := x.keys(now)
		if keys = append(keys, found); err != nil {
			failures = append(failures, err)
		}
	}
	i.mu.RLock()
	indexes := i.indexes
	i.mu.RUnlock()
	for _, x := range indexes { // without the lock: find may be slow
		find(x)
	}
	for _, err := range failures {
		i.metrics.Failed(err)
	}
	if recreated {
		i.metrics.Changed(Deleted)
	}
	i.metrics.Changed(e.typ)
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, x := range i.indexes {
		if n == len(keys) { // added meanwhile
			find(x)
		}
		x.replace(old, now, keys[n])
	}
	s.putLocked(old, now)
	if recreated {
		i.events.append(entry[T]{typ: Deleted, old: old, inferred: true})
	}
	i.events.append(e)
	for _, err := range failures {
		i.events.append(entry[T]{err: err})
	}
}

// Head implements [reflector.Sink].
func (s *shard[T]) Head() uint64 { return s.head }

// Holds implements [reflector.Sink].
func (s *shard[T]) Holds(key kube.Key) bool { return s.objects[string(key)] != nil }

// Begin implements [reflector.Sink].
func (s *shard[T]) Begin(overwrite bool) {
	s.listID++
	s.overwrite = overwrite
}

// Item implements [reflector.Sink]. An object whose version is already held is left as it is.
// A list is consistent, so that one below what is held is of another history.
func (s *shard[T]) Item(it *scan.Item) error {
	old := s.lookup(it)
	switch {
	case s.overwrite:
	case old == nil && it.RV <= s.head:
		return fmt.Errorf("%s/%s at %d is not held at the head %d", it.Namespace, it.Name, it.RV, s.head)
	case old != nil && it.RV < old.rv:
		return fmt.Errorf("%s/%s at %d is held at %d", it.Namespace, it.Name, it.RV, old.rv)
	}
	switch {
	case old == nil:
		now := s.newRecord(it, nil)
		s.replace(nil, now, entry[T]{typ: Added, now: now, initial: !s.synced})
	case !old.sameObject(it):
		now := s.newRecord(it, nil)
		s.replace(old, now, entry[T]{typ: Added, now: now})
	case old.rv == it.RV && !s.overwrite:
		old.listID = s.listID
	default:
		now := s.newRecord(it, old)
		if bytes.Equal(old.raw, now.raw) {
			old.listID = s.listID
			return nil
		}
		s.replace(old, now, entry[T]{typ: Updated, old: old, now: now})
	}
	return nil
}

// End implements [reflector.Sink]. Objects that were not in the list are deleted.
func (s *shard[T]) End(list *scan.List) (continued bool) {
	for _, r := range s.objects {
		if r.listID != s.listID && (r.rv <= list.RV || s.overwrite) {
			s.replace(r, nil, entry[T]{typ: Deleted, old: r, inferred: true})
		}
	}
	i := s.of
	i.mu.Lock()
	defer i.mu.Unlock()
	continued = s.head > 0
	if list.RV > s.head || s.overwrite {
		s.head = list.RV
	}
	s.synced, s.failures, s.lastErr = true, 0, nil
	i.refusals = 0
	i.syncLocked()
	i.events.wake()
	i.changeLocked()
	return continued
}

// Apply implements [reflector.Sink]. It ignores events that it has applied before.
func (s *shard[T]) Apply(typ kube.EventType, it *scan.Item) error {
	if it.RV < s.head {
		return fmt.Errorf("%s %s/%s at %d is before the head %d", typ, it.Namespace, it.Name, it.RV, s.head)
	}
	old := s.lookup(it)
	switch {
	case old != nil && it.RV <= old.rv: // repeated
	case typ == kube.Deleted && old == nil: // repeated, or never seen
	case typ == kube.Deleted && old.sameObject(it):
		s.replace(old, nil, entry[T]{typ: Deleted, old: s.newRecord(it, old)})
	case typ == kube.Deleted: // of a successor that was never seen
		s.replace(old, nil, entry[T]{typ: Deleted, old: old, inferred: true})
	default:
		now := s.newRecord(it, old)
		e := entry[T]{typ: Updated, old: old, now: now}
		if old == nil || !old.sameObject(it) {
			e.typ, e.old = Added, nil
		}
		s.replace(old, now, e)
	}
	s.advance(it.RV)
	return nil
}

// Bookmark implements [reflector.Sink].
func (s *shard[T]) Bookmark(rv uint64, _ *scan.Item) { s.advance(rv) }

func (s *shard[T]) advance(rv uint64) {
	i := s.of
	i.mu.Lock()
	defer i.mu.Unlock()
	s.head = max(s.head, rv)
	i.changeLocked()
}

// Flush implements [reflector.Sink]. Changes are visible in the copy at once; it wakes
// subscribers for those that they have not been woken for.
func (s *shard[T]) Flush() {
	i := s.of
	i.mu.Lock()
	defer i.mu.Unlock()
	i.events.wake()
}
