// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A selection selects the objects of a resource for a request.
type selection struct {
	namespace string
	labels    []requirement
	fields    []requirement
}

// A requirement is one term of a selector.
type requirement struct {
	key    string
	values []string
	not    bool // the value is none of values
	exists bool // there is a value; with not, none
}

// isEverything reports whether the selection has no selector.
func (sel *selection) isEverything() bool { return len(sel.labels)+len(sel.fields) == 0 }

func (sel *selection) matches(o *Object) bool {
	if o == nil || sel.namespace != "" && o.Namespace != sel.namespace {
		return false
	}
	if sel.isEverything() {
		return true
	}
	a := o.attributes()
	for _, r := range sel.labels {
		if value, ok := a.labels[r.key]; !r.matches(value, ok) {
			return false
		}
	}
	for _, r := range sel.fields {
		if !r.matches(a.field(r.key), true) {
			return false
		}
	}
	return true
}

func (r *requirement) matches(value string, ok bool) bool {
	if r.exists {
		return ok != r.not
	}
	return (ok && slices.Contains(r.values, value)) != r.not
}

func parseSelection(namespace, labels, fields string) (sel selection, err error) {
	sel.namespace = namespace
	if sel.labels, err = parseLabels(labels); err != nil {
		return sel, fmt.Errorf("unable to parse labelSelector %q: %w", labels, err)
	}
	if sel.fields, err = parseFields(fields); err != nil {
		return sel, fmt.Errorf("unable to parse fieldSelector %q: %w", fields, err)
	}
	return sel, nil
}

// The forms of a label's requirement: a, !a, a=b, a==b, a!=b, a in (b,c), a notin (b,c).
// (kube-apiserver also has a>1 and a<1.)
var labelForm = regexp.MustCompile(`^\s*(?:(!)\s*([\w./-]+)|([\w./-]+)(?:\s*(==|=|!=)\s*([\w.-]*)|\s+(in|notin)\s*\(([\w., -]*)\))?)\s*$`)

func parseLabels(text string) (all []requirement, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for _, term := range splitOutside(text) {
		m := labelForm.FindStringSubmatch(term)
		if m == nil {
			return nil, fmt.Errorf("%q is no requirement", term)
		}
		r := requirement{key: m[2] + m[3], not: m[1] != "" || m[4] == "!=" || m[6] == "notin"}
		switch {
		case m[4] != "":
			r.values = []string{m[5]}
		case m[6] != "":
			for value := range strings.SplitSeq(m[7], ",") {
				r.values = append(r.values, strings.TrimSpace(value))
			}
		default:
			r.exists = true
		}
		all = append(all, r)
	}
	return all, nil
}

// splitOutside splits a selector at the commas that are not in parentheses.
func splitOutside(text string) (terms []string) {
	depth, begin := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			terms = append(terms, text[begin:i])
			begin = i + 1
		}
	}
	return append(terms, text[begin:])
}

// The forms of a field's requirement: a=b, a==b, a!=b.
var fieldForm = regexp.MustCompile(`^([^=!]+)(==|=|!=)(.*)$`)

func parseFields(text string) (all []requirement, err error) {
	if text == "" {
		return nil, nil
	}
	for term := range strings.SplitSeq(text, ",") {
		if term == "" {
			continue
		}
		m := fieldForm.FindStringSubmatch(term)
		if m == nil {
			return nil, fmt.Errorf("invalid selector: '%s'; can't understand '%s'", text, term)
		}
		all = append(all, requirement{key: m[1], values: []string{m[3]}, not: m[2] == "!="})
	}
	return all, nil
}
