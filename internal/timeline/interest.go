// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// An Interest says which objects a watcher selects. The zero value selects all.
//
// Match decides. Namespace and Attribute follow from it and are what the index
// finds the watcher by: every object that matches is in the namespace and has
// the attribute with one of its values. The narrower they are, the fewer events
// are tested by Match.
type Interest struct {
	// Match reports whether an object is selected. The result depends on the
	// object only; any goroutine may call it. nil selects all.
	Match func(*scan.Object) bool
	// Namespace is the namespace of all objects that match, "" if there may be
	// several or none.
	Namespace string
	// Attribute is one that all objects that match have; nil if there is none.
	Attribute *Attribute
}

// An Attribute is a label or a field with one of some values.
type Attribute struct {
	// Label is the label's key, "" for a field.
	Label string
	// Field is the field's name, such as spec.nodeName. FieldValue reads it, in
	// the same way in all attributes of that name.
	Field      string
	FieldValue func(*scan.Object) string
	// Values are the values it may have; none means any.
	Values []string
}

// An attributeName identifies the label or the field of attributes.
type attributeName struct {
	kind attributeKind
	name string
}

type attributeKind uint8

const (
	label attributeKind = iota
	field
)

func (a *Attribute) name() attributeName {
	if a.Label != "" {
		return attributeName{label, a.Label}
	}
	return attributeName{field, a.Field}
}

// matches reports whether an object, which may be nil, is selected.
func (in *Interest) matches(o *scan.Object) bool {
	return o != nil && (in.Match == nil || in.Match(o))
}

// concerns reports whether Seen has an event for the watcher.
func (in *Interest) concerns(e *Event) bool {
	return in.matches(e.Prev) || e.Type != kube.Deleted && in.matches(e.Object)
}

// Seen returns the type and object of an event as a watcher with the interest
// sees it; ok is false if it sees none. An object that stops matching is DELETED:
// its last state that matched, at the RV of the event.
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
		return kube.Deleted, e.deselected(), true
	}
	return "", nil, false
}
