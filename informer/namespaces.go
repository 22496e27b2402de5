// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// ErrAllNamespaces is what AddNamespace and RemoveNamespace return when all
// namespaces are watched.
var ErrAllNamespaces = errors.New("all namespaces are watched")

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

// Status returns what the informer knows of itself, over all namespaces: the
// phase that is furthest from Watching, the lowest RV, the oldest contact, and
// the sums of what is counted.
func (i *Informer[T]) Status() Status {
	i.mu.RLock()
	defer i.mu.RUnlock()
	sum := Status{Phase: Starting, Relists: map[string]int{}}
	if i.ended {
		sum.Phase = Stopped
	}
	first := true
	for _, s := range i.shards {
		if s.reflector == nil {
			continue
		}
		one := s.reflector.Status()
		if first || phaseOrder[one.Phase] < phaseOrder[sum.Phase] {
			sum.Phase = one.Phase
		}
		if first || s.head < sum.RV {
			sum.RV = s.head
		}
		if first || one.LastContact.Before(sum.LastContact) {
			sum.LastContact = one.LastContact
		}
		if one.LastError != nil {
			sum.LastError = one.LastError
		}
		sum.Warnings = append(sum.Warnings, one.Warnings...)
		sum.Bytes += one.Bytes
		sum.Held += s.bytes
		for reason, n := range one.Relists {
			sum.Relists[reason] += n
		}
		first = false
	}
	sum.Objects = i.lenLocked()
	for t := range i.tasks {
		if t.queued != nil {
			sum.Queued += t.queued()
		}
	}
	for s := range i.hub.subs {
		sum.Behind = max(sum.Behind, i.hub.behind(s))
	}
	if !sum.LastContact.IsZero() {
		sum.Lag = time.Since(sum.LastContact)
	}
	return sum
}

// phaseOrder tells phases by how far they are from Watching.
var phaseOrder = map[Phase]int{Refused: 0, Stopped: 1, Starting: 2, Retrying: 3, Listing: 4, Watching: 5}
