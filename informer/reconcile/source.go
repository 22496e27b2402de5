// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer"
)

// A Source is an informer whose changes lead to calls of a controller's function. Make
// it with [For], [Owns], [Watches] or [Reads], which panic if an argument is nil. Several
// controllers may use one informer.
//
// Filters and the functions of [Watches] are called while events are delivered: one call
// at a time for each controller, concurrently if several controllers use the source. They
// should not block. They may read informers and their indexes, and add and remove
// namespaces. They must not wait for a list, nor for the end of an informer, a controller
// or a group, which wait for the calls to return. A panic ends the program. A call of
// runtime.Goexit, as t.FailNow is one, ends the deliveries until the informer runs again,
// and loses the event; tests should call t.Error.
type Source struct {
	informer Informer
	// subscribe passes the keys of each event to add, and calls synced after those of
	// the objects that exist, until stop is called. done is closed when none of its
	// functions is called any more.
	subscribe func(add func(lane, []informer.Key), synced func()) (stop func() (done <-chan struct{}))
}

// For is the source of the objects that a controller is for: their own keys. A controller
// has one, since keys do not name a resource. An event for which one of the filters
// returns false is ignored.
func For[T any](i *informer.Informer[T], filters ...func(informer.Event[T]) bool) Source {
	return newSource("For", i, func(ref informer.Ref[T]) []informer.Key { return []informer.Key{ref.Key()} }, filters)
}

// A Kind is the kind of an owner.
type Kind struct {
	Group, Kind   string // such as "apps" and "Deployment"; without a version, "" for the core group
	ClusterScoped bool   // the owners have no namespace
}

// Owns is the source of objects that a controller creates for its own ones: the key is
// that of the object's controller, in metadata.ownerReferences, if it is of the given
// kind. Objects are not decoded. An event for which one of the filters returns false is
// ignored.
//
// Owns panics if the group has a version, or if the kind is empty or does not begin with an
// upper-case letter, as "deployments" does not. For a CustomResourceDefinition with such a
// kind, which Kubernetes' conventions advise against, use [Watches].
func Owns[T any](i *informer.Informer[T], owner Kind, filters ...func(informer.Event[T]) bool) Source {
	switch {
	case owner.Kind == "" || owner.Kind[0] < 'A' || owner.Kind[0] > 'Z':
		panic(fmt.Sprintf("reconcile: Owns needs a kind such as \"Deployment\", not %q", owner.Kind))
	case strings.Contains(owner.Group, "/"):
		panic(fmt.Sprintf("reconcile: Owns needs a group without a version, not %q", owner.Group))
	}
	return newSource("Owns", i, func(ref informer.Ref[T]) []informer.Key {
		o, ok := ref.Controller()
		if !ok || o.Kind != owner.Kind || group(o.APIVersion) != owner.Group {
			return nil
		}
		key := informer.Key{Namespace: ref.Key().Namespace, Name: o.Name}
		if owner.ClusterScoped {
			key.Namespace = ""
		}
		return []informer.Key{key}
	}, filters)
}

// group returns the group of an apiVersion: "" of "v1".
func group(apiVersion string) string {
	if name, _, ok := strings.Cut(apiVersion, "/"); ok {
		return name
	}
	return ""
}

// Watches is the source of any other objects. keys returns the keys that depend on a
// version of an object. For an update, it is called for the old version and for the new
// one; it may use its slice again. See [Source] for what keys must not do. An event for
// which one of the filters returns false is ignored.
func Watches[T any](i *informer.Informer[T], keys func(informer.Ref[T]) []informer.Key, filters ...func(informer.Event[T]) bool) Source {
	if keys == nil {
		panic("reconcile: the function of Watches is nil")
	}
	return newSource("Watches", i, keys, filters)
}

// Reads is a source without keys: the controller's function reads the objects, and is
// not called until they are complete, but their changes do not lead to calls.
func Reads[T any](i *informer.Informer[T]) Source {
	return newSource("Reads", i, func(informer.Ref[T]) []informer.Key { return nil }, nil)
}

// GenerationChanged is a filter that ignores updates of an object that leave its
// metadata.generation as it is: those of the status, of labels, annotations and
// finalizers. A deletion that waits for finalizers changes the generation. Updates of
// objects that have no generation are not ignored.
func GenerationChanged[T any](e informer.Event[T]) bool {
	now := e.New.Generation()
	return e.Type != informer.Updated || now == 0 || now != e.Old.Generation()
}

func newSource[T any](of string, i *informer.Informer[T], keys func(informer.Ref[T]) []informer.Key, filters []func(informer.Event[T]) bool) Source {
	if i == nil {
		panic(fmt.Sprintf("reconcile: the informer of %s is nil", of))
	}
	for n, f := range filters {
		if f == nil {
			panic(fmt.Sprintf("reconcile: filter %d of %s is nil", n, of))
		}
	}
	return Source{i, func(add func(lane, []informer.Key), synced func()) (stop func() (done <-chan struct{})) {
		event := func(e informer.Event[T]) {
			ignores := func(passes func(informer.Event[T]) bool) bool { return !passes(e) }
			if !slices.ContainsFunc(filters, ignores) {
				add(laneOf(e), keysOf(e, keys))
			}
		}
		return i.Handle(informer.Handler[T]{
			Event: event,
			// A call may have read the object while it existed.
			Transient: func(last informer.Ref[T]) {
				event(informer.Event[T]{Type: informer.Deleted, Key: last.Key(), Old: last, Coalesced: true})
			},
			Synced: synced,
		})
	}}
}

// keysOf returns the keys of both versions of an event. The function may use its slice
// again.
func keysOf[T any](e informer.Event[T], keys func(informer.Ref[T]) []informer.Key) []informer.Key {
	switch {
	case e.Old.IsZero():
		return keys(e.New)
	case e.New.IsZero():
		return keys(e.Old)
	}
	old := slices.Clone(keys(e.Old))
	now := keys(e.New)
	if slices.Equal(old, now) {
		return now
	}
	return append(old, now...)
}

// laneOf returns the lane of an event. An inferred deletion follows from a list, or is
// followed by an Added.
func laneOf[T any](e informer.Event[T]) lane {
	if e.Initial || e.Inferred {
		return initial
	}
	return live
}
