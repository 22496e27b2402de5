// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"slices"
)

// A Scope is a part of a cluster.
type Scope struct {
	// Namespace is the only one of the recording, by its pseudonym if names were replaced;
	// "" for all.
	Namespace string `json:"namespace,omitempty"`
	// Selected is set if a label selector chose the objects. LabelSelector is the selector,
	// unless names were replaced: it may contain some.
	Selected      bool   `json:"selected,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Resources are those that were named; none for all.
	Resources []string `json:"resources,omitempty"`
	// Denied are the recorded resources that are not in the recording, since who made it may
	// not list them.
	Denied []string `json:"denied,omitempty"`
}

// scope returns what is selected of [Selection.Within], which is not shared; nil if that is
// everything.
func (sel Selection) scope() *Scope {
	if sel.Within == nil && sel.whole() && !sel.Named && sel.Denied == nil {
		return nil
	}
	s := &Scope{}
	if sel.Within != nil {
		*s = *sel.Within
	}
	s.Namespace = cmp.Or(sel.Namespace, s.Namespace)
	s.Denied = slices.Concat(s.Denied, sel.Denied)
	if sel.Labels != nil && !sel.Labels.Empty() {
		switch selector := sel.Labels.String(); {
		case !s.Selected:
			s.Selected, s.LabelSelector = true, selector
		case s.LabelSelector != "":
			s.LabelSelector += "," + selector
		}
	}
	if sel.Named {
		s.Resources = nil
		for _, r := range sel.Resources {
			s.Resources = append(s.Resources, r.GroupResource())
		}
	}
	return s
}
