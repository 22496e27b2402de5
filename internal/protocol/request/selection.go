// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A Filter reports whether an object is selected. The result depends on the object
// only. nil selects all objects.
type Filter func(*scan.Object) bool

// Matches reports whether an object is selected.
func (f Filter) Matches(o *scan.Object) bool { return f == nil || f(o) }

// A FieldFunc returns the function that reads a selectable field, by the field's
// label. ok is false if there is no such field, or if the selectable fields are not
// known.
type FieldFunc func(label string) (value Value, ok bool)

// A Value reads a field of an object.
type Value = func(*scan.Object) string

// A Selection is the scope and the selectors of a LIST or WATCH, once the scope of
// its resource and its selectable fields are known. It is immutable.
type Selection struct {
	// Namespace is the scope; "" for all namespaces, or a cluster-scoped resource.
	Namespace string
	// Narrowed is set when metadata.namespace in the field selector made the scope
	// smaller than that of the path.
	Narrowed bool
	// Key is the only object that can match; "" if several can.
	Key   kube.Key
	Match Filter
	// Attribute is an attribute that all matching objects have; nil if there is none.
	Attribute *timeline.Attribute
}

// Select resolves the scope and the selectors. It returns false if only the API server
// can do so.
func (rd *Read) Select(namespaced bool, fieldOf FieldFunc) (Selection, bool) {
	return Select(rd.Target, rd.Options.LabelSelector, rd.Options.FieldSelector, namespaced, fieldOf)
}

// Select is [Read.Select] for a target and selectors; nil selectors select all.
func Select(t Target, labelSelector labels.Selector, selector fields.Selector, namespaced bool, fieldOf FieldFunc) (Selection, bool) {
	s := Selection{Namespace: t.Namespace}
	var all []Filter
	if selector == nil {
		selector = fields.Everything()
	}
	name, hasName := selector.RequiresExactMatch("metadata.name")
	if t.Name != "" { // a /watch/ path
		if hasName && name != t.Name {
			return s, false
		}
		name, hasName = t.Name, true
		all = append(all, func(o *scan.Object) bool { return NameOf(o) == name })
	}
	if hasName {
		s.Attribute = &timeline.Attribute{Field: "metadata.name", FieldValue: NameOf, Values: []string{name}}
	}
	if namespace := t.Namespace; namespace != "" {
		all = append(all, func(o *scan.Object) bool { return NamespaceOf(o) == namespace })
	} else if ns, ok := selector.RequiresExactMatch("metadata.namespace"); namespaced && ok && ns != "" {
		s.Namespace, s.Narrowed = ns, true
	}
	for _, req := range selector.Requirements() {
		field := strings.Clone(req.Field) // or else an index would keep the whole query in memory
		value, ok := fieldOf(field)
		if !ok {
			return s, false
		}
		want := req.Value
		switch req.Operator {
		case selection.Equals, selection.DoubleEquals:
			all = append(all, func(o *scan.Object) bool { return value(o) == want })
			if s.Attribute == nil && field != "metadata.namespace" {
				s.Attribute = &timeline.Attribute{Field: field, FieldValue: value, Values: []string{want}}
			}
		case selection.NotEquals:
			all = append(all, func(o *scan.Object) bool { return value(o) != want })
		default:
			return s, false
		}
	}
	if labelSelector != nil && !labelSelector.Empty() {
		all = append(all, func(o *scan.Object) bool { return labelSelector.Matches(o.Labels) })
		if s.Attribute == nil {
			s.Attribute = labelOf(labelSelector)
		}
	}
	if hasName && (s.Namespace != "") == namespaced {
		s.Key = kube.MakeKey(s.Namespace, name)
	}
	s.Match = allOf(all)
	return s, true
}

// allOf returns a filter that selects the objects that all filters select.
func allOf(all []Filter) Filter {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(o *scan.Object) bool {
		for _, f := range all {
			if !f(o) {
				return false
			}
		}
		return true
	}
}

// Interest returns the interest of a watch with this selection.
func (s Selection) Interest() timeline.Interest {
	return timeline.Interest{Match: s.Match, Namespace: s.Namespace, Attribute: s.Attribute}
}

// BuiltInFields returns the selectable fields of one of the API server's own
// resources.
func BuiltInFields(r kube.Resource) FieldFunc {
	return func(label string) (func(*scan.Object) string, bool) {
		field, ok := r.Field(label)
		return scan.FieldValue(field), ok
	}
}

// NameOf returns an object's name, NamespaceOf its namespace.
func NameOf(o *scan.Object) string      { return o.Key.Name() }
func NamespaceOf(o *scan.Object) string { return o.Key.Namespace() }

// labelOf returns a label that all selected objects have, nil if there is none. Of
// several labels it returns the one with the fewest values.
func labelOf(selector labels.Selector) (found *timeline.Attribute) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		a := &timeline.Attribute{Label: strings.Clone(r.Key())} // as above
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			a.Values = r.ValuesUnsorted()
		case selection.Exists, selection.GreaterThan, selection.LessThan: // any value
		default:
			continue
		}
		if found == nil || len(found.Values) == 0 || 0 < len(a.Values) && len(a.Values) < len(found.Values) {
			found = a
		}
	}
	return found
}
