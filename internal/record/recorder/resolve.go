// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// ErrNotServed: the API server does not have a resource that a pattern names.
var ErrNotServed = errors.New("matches no resource of the API server")

// isName reports whether a pattern names a resource. Other patterns may match nothing:
// what they match can be installed later.
func (p pattern) isName() bool { return p.set == "" && !strings.Contains(p.name+p.group, "*") }

// resolve returns the selection with the names of resources in place of kubectl's other
// names for them. As in kubectl, the name of a resource has precedence.
func (s Selection) resolve(found upstream.Preferred) Selection {
	all := slices.Collect(maps.Keys(found.Kinds))
	for _, list := range []*[]pattern{&s.include, &s.exclude} {
		var out []pattern
		for _, p := range *list {
			out = append(out, p)
			if !p.isName() || slices.ContainsFunc(all, p.matches) {
				continue
			}
			for id, names := range found.Names {
				if slices.Contains(names, p.name) && (p.anyGroup || p.group == id.Group) {
					out = append(out, pattern{text: p.text, name: id.Name, group: id.Group})
				}
			}
		}
		*list = out
	}
	return s
}

// unmatched returns the included patterns that match none of the resources: those that
// name a resource, and others.
func (s Selection) unmatched(all []kube.Resource) (names, others []pattern) {
	matched := map[string]bool{}
	for _, p := range s.include {
		if slices.ContainsFunc(all, p.matches) {
			matched[p.text] = true
		}
	}
	for _, p := range s.include {
		switch {
		case matched[p.text]:
		case p.isName():
			names = append(names, p)
		default:
			others = append(others, p)
		}
		matched[p.text] = true // report it once
	}
	return names, others
}

// checkNames resolves the names in the selection. It fails with ErrNotServed if one of
// them is surely a mistake: the API server is asked and does not have it, and it was
// never recorded. If the API server does not answer, the session finds out later.
func (r *Recorder) checkNames(ctx context.Context) error {
	if !slices.ContainsFunc(r.opts.Select.include, pattern.isName) {
		return nil
	}
	found, err := r.opts.Upstream.Preferred(ctx)
	if err != nil {
		return nil
	}
	sel := r.resolve(found)
	known := slices.Collect(maps.Keys(found.Kinds))
	if store := r.Store(); store != nil {
		known = append(known, store.Resources()...)
	}
	names, _ := sel.unmatched(known)
	for _, p := range names {
		if len(found.Unknown) == 0 || !p.anyGroup && found.Unknown[p.group] == nil {
			return fmt.Errorf("--record: %w ('kubectl api-resources' lists all resources; for one that will be installed later, use a pattern with *)", notServed(p, found))
		}
	}
	if slices.ContainsFunc(sel.include, func(p pattern) bool { return !p.isName() }) || slices.ContainsFunc(known, sel.Matches) {
		return nil
	}
	if len(found.Unknown) == 0 { // each name is excluded again, by another of its names
		return ErrNothing
	}
	return nil
}

// resolve resolves the names in the selection, for this and the following sessions.
func (r *Recorder) resolve(found upstream.Preferred) Selection {
	sel := r.opts.Select.resolve(found)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.selection = sel
	return sel
}

// notServed returns the error for a name that no resource has.
func notServed(p pattern, found upstream.Preferred) error {
	if near := nearest(p.name, found); near != "" {
		return fmt.Errorf("%q %w: did you mean %s?", p.text, ErrNotServed, near)
	}
	return fmt.Errorf("%q %w", p.text, ErrNotServed)
}

// nearest returns the resource with the name that is most like a mistyped one, "" if
// none is.
func nearest(name string, found upstream.Preferred) string {
	best, least := "", len(name)/3+1
	for _, id := range slices.SortedFunc(maps.Keys(found.Kinds), func(a, b kube.Resource) int { return cmp.Compare(a.GroupResource(), b.GroupResource()) }) {
		for _, known := range append([]string{id.Name}, found.Names[id]...) {
			if d := distance(name, known); d < least {
				best, least = id.GroupResource(), d
			}
		}
	}
	return best
}

// distance returns how many letters have to be added, removed or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
