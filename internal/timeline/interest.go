// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// An Interest says which objects a watcher wants. The zero value is everything.
//
// Match decides. The rest is what follows from it, by which the index finds the
// watcher: every object that matches is in the namespace, and has the attribute
// with one of the values. The narrower, the fewer events the watcher is asked
// about.
type Interest struct {
	// Match reports whether an object is wanted. It depends on nothing but the
	// object, and may be called by any goroutine. nil is everything.
	Match func(*scan.Object) bool
	// Namespace is the namespace of all that match; "" if there are several, or
	// none.
	Namespace string
	// Attribute is one that all have which match; nil if there is none.
	Attribute *Attribute
}

// An Attribute is a label or a field with one of some values.
type Attribute struct {
	// Label is the label's key, "" for a field.
	Label string
	// Field is the field's name, such as spec.nodeName, and Of how its value is
	// found: the same for all interests of a timeline in that field.
	Field string
	Of    func(*scan.Object) string
	// Values are the values it may have. None is any, of a label that is there.
	Values []string
}

// matches reports whether an object, which may be nil, is wanted.
func (in *Interest) matches(o *scan.Object) bool {
	return o != nil && (in.Match == nil || in.Match(o))
}

// concerns reports whether the event makes a difference to who watches for the
// interest.
func (in *Interest) concerns(e *Event) bool {
	return in.matches(e.Prev) || e.Type != kube.Deleted && in.matches(e.Object)
}

// Seen says what an event is to a watcher of what matches: its type and object.
// ok is false when it is nothing. An object that has ceased to match is as
// deleted: its last state that did, at the RV at which it no longer does.
func (in *Interest) Seen(e *Event) (typ kube.EventType, object *scan.Object, ok bool) {
	before := in.matches(e.Prev)
	now := e.Type != kube.Deleted && in.matches(e.Object)
	switch {
	case before && now:
		return kube.Modified, e.Object, true
	case now:
		return kube.Added, e.Object, true
	case before && e.Type == kube.Deleted:
		return kube.Deleted, e.Object, true
	case before:
		return kube.Deleted, e.left(), true
	}
	return "", nil, false
}
