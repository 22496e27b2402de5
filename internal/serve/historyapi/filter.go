// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// A filter selects changes by what the log of a stream has: their object and type.
type filter struct {
	namespace string // "" for all; those of cluster-scoped resources match if named
	named     bool   // the request names resources
	types     []string
	terms     []term
}

// A term matches a part of a name or of a namespace, regardless of case.
type term struct {
	namespace, not bool
	part           string
}

// maxTerms bounds a filter, which is compared with every change.
const maxTerms = 100

// filter reads the parameters that select changes.
func (c *call) filter() (f filter, err error) {
	f.namespace, f.named = c.query.Get("namespace"), c.query.Has("resource")
	f.types = c.query["type"]
	for _, t := range f.types {
		if t != api.Added && t != api.Modified && t != api.Deleted {
			return f, refuseBad("type is %q: it has to be %s, %s or %s", t, api.Added, api.Modified, api.Deleted)
		}
	}
	words := strings.Fields(c.query.Get("filter"))
	if len(words) > maxTerms {
		return f, refuseBad("the filter has %d terms: at most %d are possible", len(words), maxTerms)
	}
	for _, word := range words {
		if strings.Contains(word, "=") {
			return f, refuseBad("filter: %q is not a part of a name: changes are not selected by labels", word)
		}
		t := term{}
		if rest, ok := strings.CutPrefix(word, "-"); ok && rest != "" {
			t.not, word = true, rest
		}
		t.part = strings.ToLower(word)
		if key, value, ok := strings.Cut(t.part, ":"); ok {
			switch key {
			case "name":
			case "ns", "namespace":
				t.namespace = true
			default:
				return f, refuseBad("filter: there is no key %q: terms are a part of a name, such as web, or ns: with a part of a namespace; a minus negates", key)
			}
			t.part = value
		}
		if t.part != "" { // otherwise the user is still typing it
			f.terms = append(f.terms, t)
		}
	}
	return f, nil
}

// match returns the filter as a Match for a resource, nil if it selects everything.
func (f filter) match(clusterScoped bool) history.Match {
	if clusterScoped && f.named {
		f.namespace = "" // kubectl get ignores it, too
	}
	if f.namespace == "" && len(f.types) == 0 && len(f.terms) == 0 {
		return nil
	}
	return func(key kube.Key, typ kube.EventType) bool {
		if f.namespace != "" && key.Namespace() != f.namespace || len(f.types) > 0 && !slices.Contains(f.types, string(typ)) {
			return false
		}
		for _, t := range f.terms {
			text := key.Name()
			if t.namespace {
				text = key.Namespace()
			}
			if strings.Contains(strings.ToLower(text), t.part) == t.not {
				return false
			}
		}
		return true
	}
}

// An authorship selects changes by what comparing versions shows.
type authorship struct {
	by   string // a field manager; "" for all
	spec bool   // changes of the status only are left out
}

// authorship reads the parameters by and spec.
func (c *call) authorship() (a authorship, err error) {
	a.by = c.query.Get("by")
	a.spec, err = c.flag("spec")
	return a, err
}

// leavesOut reports whether a change is left out.
func (a authorship) leavesOut(item *api.Change, onlyStatus bool) bool {
	return a.spec && onlyStatus || a.by != "" && !slices.ContainsFunc(item.By, func(m change.Manager) bool { return m.Manager == a.by })
}
