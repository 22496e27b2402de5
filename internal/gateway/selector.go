// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A filterFunc says whether an object is selected. It depends on nothing but
// the object. nil selects all.
type filterFunc func(*scan.Object) bool

func (f filterFunc) matches(o *scan.Object) bool { return f == nil || f(o) }

// A fieldFunc tells how the value of a selectable field is found, by the field's
// label; false means that there is no such field, or that it is not known.
type fieldFunc func(label string) (value func(*scan.Object) string, ok bool)

// builtInFields is the fieldFunc of one of the API server's own resources.
func builtInFields(r kube.Resource) fieldFunc {
	return func(label string) (value func(*scan.Object) string, ok bool) {
		field, ok := r.Field(label)
		return scan.FieldValue(field), ok
	}
}

// selectors works the scope and the selectors of a LIST or WATCH out into
// rd.match, rd.attribute and rd.key. It returns false for what is the API
// server's to judge.
func (rd *read) selectors(namespaced bool, fieldOf fieldFunc) bool {
	var all []filterFunc
	selector := rd.opts.FieldSelector
	if selector == nil {
		selector = fields.Everything()
	}
	name, hasName := selector.RequiresExactMatch("metadata.name")
	if rd.name != "" { // a /watch/ path
		if hasName && name != rd.name {
			return false
		}
		name, hasName = rd.name, true
		all = append(all, func(o *scan.Object) bool { return nameOf(o) == name })
	}
	if hasName {
		rd.attribute = &timeline.Attribute{Field: "metadata.name", Of: nameOf, Values: []string{name}}
	}
	namespace := rd.namespace
	if namespace != "" {
		all = append(all, func(o *scan.Object) bool { return o.Key.Namespace() == namespace })
	} else if ns, ok := selector.RequiresExactMatch("metadata.namespace"); namespaced && ok && ns != "" {
		rd.namespace, rd.narrowed = ns, true
	}
	for _, req := range selector.Requirements() {
		field := strings.Clone(req.Field) // an index would keep the request's text alive
		value, ok := fieldOf(field)
		if !ok {
			return false
		}
		want := req.Value
		switch req.Operator {
		case selection.Equals, selection.DoubleEquals:
			all = append(all, func(o *scan.Object) bool { return value(o) == want })
			if rd.attribute == nil && field != "metadata.namespace" {
				rd.attribute = &timeline.Attribute{Field: field, Of: value, Values: []string{want}}
			}
		case selection.NotEquals:
			all = append(all, func(o *scan.Object) bool { return value(o) != want })
		default:
			return false
		}
	}
	if labels := rd.opts.LabelSelector; labels != nil && !labels.Empty() {
		all = append(all, func(o *scan.Object) bool { return labels.Matches(o.Labels) })
		if rd.attribute == nil {
			rd.attribute = labelOf(labels)
		}
	}
	if hasName && (rd.namespace != "") == namespaced {
		rd.key = kube.MakeKey(rd.namespace, name)
	}
	switch len(all) {
	case 0:
	case 1:
		rd.match = all[0]
	default:
		rd.match = func(o *scan.Object) bool {
			for _, f := range all {
				if !f(o) {
					return false
				}
			}
			return true
		}
	}
	return true
}

func nameOf(o *scan.Object) string { return o.Key.Name() }

// labelOf returns the label that whatever the selector selects has, with the
// fewest values it may have; nil if there is none.
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

// interest returns what a watch is to tell of.
func (rd *read) interest() timeline.Interest {
	return timeline.Interest{Match: rd.match, Namespace: rd.namespace, Attribute: rd.attribute}
}

// selective reports whether the request has selectors: then a list does not
// tell how many items remain.
func (rd *read) selective() bool {
	return rd.opts.LabelSelector != nil && !rd.opts.LabelSelector.Empty() ||
		rd.opts.FieldSelector != nil && !rd.opts.FieldSelector.Empty()
}
