// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

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

// Only returns the only namespace of a recording, "" if it is not of one.
func (h *Header) Only() string {
	if h.Scope == nil {
		return ""
	}
	return h.Scope.Namespace
}

// scope returns what is selected, nil if that is everything.
func (sel Selection) scope() *Scope {
	if sel.whole() && !sel.Named && sel.Denied == nil {
		return nil
	}
	s := &Scope{Namespace: sel.Namespace, Denied: sel.Denied}
	if sel.Labels != nil && !sel.Labels.Empty() {
		s.Selected, s.LabelSelector = true, sel.Labels.String()
	}
	if sel.Named {
		for _, r := range sel.Resources {
			s.Resources = append(s.Resources, r.GroupResource())
		}
	}
	return s
}
