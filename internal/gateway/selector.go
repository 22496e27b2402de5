// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A filterFunc says whether an object is selected. It depends on nothing but
// the object. nil selects all.
type filterFunc func(*kube.Object) bool

func (f filterFunc) matches(o *kube.Object) bool { return f == nil || f(o) }

// A fieldFunc tells how the value of a selectable field is found, by the field's
// label; false means that there is no such field, or that it is not known.
type fieldFunc func(label string) (value func(*kube.Object) string, ok bool)

// selectors works the scope and the selectors of a LIST or WATCH out into
// rd.match and rd.key. It returns false for what is the API server's to judge.
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
		want := rd.name
		all = append(all, func(o *kube.Object) bool { return o.Key.Name() == want })
	}
	namespace := rd.namespace
	if namespace != "" {
		all = append(all, func(o *kube.Object) bool { return o.Key.Namespace() == namespace })
	} else if ns, ok := selector.RequiresExactMatch("metadata.namespace"); namespaced && ok && ns != "" {
		rd.namespace, rd.narrowed = ns, true
	}
	for _, req := range selector.Requirements() {
		value, ok := fieldOf(strings.Clone(req.Field)) // an index would keep the request's text alive
		if !ok {
			return false
		}
		want := req.Value
		switch req.Operator {
		case selection.Equals, selection.DoubleEquals:
			all = append(all, func(o *kube.Object) bool { return value(o) == want })
			if want != "" { // which is also that of objects without the field
				rd.terms = append(rd.terms, fieldTerm(req.Field, want, value))
			}
		case selection.NotEquals:
			all = append(all, func(o *kube.Object) bool { return value(o) != want })
		default:
			return false
		}
	}
	if labels := rd.opts.LabelSelector; labels != nil && !labels.Empty() {
		all = append(all, func(o *kube.Object) bool { return labels.Matches(o.Labels) })
		rd.terms = append(rd.terms, labelTerms(labels)...)
	}
	if hasName && (rd.namespace != "") == namespaced {
		rd.key = kube.MakeKey(rd.namespace, name)
	}
	switch len(all) {
	case 0:
	case 1:
		rd.match = all[0]
	default:
		rd.match = func(o *kube.Object) bool {
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

// fieldTerm is the selector that a field has a value. Terms of one field look it
// up in the same way: that of a resource's own fields never changes, and a custom
// resource's are named after where they stand.
func fieldTerm(field, want string, value func(*kube.Object) string) timeline.Term {
	return timeline.Term{
		Name: "field " + field,
		Of: func(o *kube.Object) (string, bool) {
			v := value(o)
			return v, v != ""
		},
		Values: []string{want},
	}
}

// labelTerms returns the equalities of a selector.
func labelTerms(selector labels.Selector) (terms []timeline.Term) {
	requirements, _ := selector.Requirements()
	for _, req := range requirements {
		switch req.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			key := strings.Clone(req.Key()) // as above
			terms = append(terms, timeline.Term{
				Name:   "label " + key,
				Of:     func(o *kube.Object) (string, bool) { return o.Labels.Lookup(key) },
				Values: req.Values().UnsortedList(),
			})
		}
	}
	return terms
}

// selective reports whether the request has selectors: then a list does not
// tell how many items remain.
func (rd *read) selective() bool {
	return rd.opts.LabelSelector != nil && !rd.opts.LabelSelector.Empty() ||
		rd.opts.FieldSelector != nil && !rd.opts.FieldSelector.Empty()
}
