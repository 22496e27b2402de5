// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Objects are trees of map[string]any and []any. A missing value, or one of
// another type, reads as nil or empty.

// at returns the value at a path of members.
func at(tree map[string]any, path ...string) any {
	var value any = tree
	for _, name := range path {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	return value
}

func members(tree map[string]any, path ...string) map[string]any {
	m, _ := at(tree, path...).(map[string]any)
	return m
}

func elements(tree map[string]any, path ...string) []any {
	l, _ := at(tree, path...).([]any)
	return l
}

// text returns a scalar as text, "" for anything else.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return ""
}

// equal reports whether two values are equal.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			if other, ok := b[name]; !ok || !equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	return a == b
}

// keyMembers identify the elements of a list, in order of preference.
var keyMembers = []string{"name", "type", "uid", "key", "containerPort", "port", "mountPath", "devicePath", "ip", "topologyKey"}

// A pair is an element of a list before and after; one of them may be nil.
type pair struct {
	key           string
	before, after any
}

// pairs matches the elements of two lists by a member that all of them have
// (with the port or the effect where needed), or by value if they are scalars.
// ok is false if there is no such member. Elements of the later list come
// first, in its order.
func pairs(before, after []any) (out []pair, ok bool) {
	for _, name := range append([]string{""}, keyMembers...) {
		old, fits := keyed(before, name)
		if !fits {
			continue
		}
		now, fits := keyed(after, name)
		if !fits {
			continue
		}
		for i, value := range after {
			key := elementKey(value, name)
			out = append(out, pair{key: key, after: after[i], before: valueAt(before, old, key)})
		}
		for i, value := range before {
			if key := elementKey(value, name); !has(now, key) {
				out = append(out, pair{key: key, before: before[i]})
			}
		}
		return out, true
	}
	return nil, false
}

func has(index map[string]int, key string) bool {
	_, ok := index[key]
	return ok
}

func valueAt(list []any, index map[string]int, key string) any {
	if i, ok := index[key]; ok {
		return list[i]
	}
	return nil
}

// keyed indexes a list. It returns false if elements have no key, or share one.
func keyed(list []any, name string) (map[string]int, bool) {
	index := make(map[string]int, len(list))
	for i, value := range list {
		key := elementKey(value, name)
		if key == "" || has(index, key) {
			return nil, false
		}
		index[key] = i
	}
	return index, true
}

// elementKey returns the key of an element, "" if it has none.
func elementKey(value any, name string) string {
	if name == "" {
		return text(value)
	}
	m, _ := value.(map[string]any)
	key := text(m[name])
	if name == "key" && key != "" && m["effect"] != nil {
		key += ":" + text(m["effect"]) // taints and tolerations
	}
	if (name == "port" || name == "containerPort") && key != "" && m["protocol"] != nil {
		key += "/" + text(m["protocol"])
	}
	return key
}

// A leaf is a value that differs. Its path consists of member names, and of
// [key] for elements of lists. A missing value is nil.
type leaf struct {
	path          []string
	before, after any
}

// String returns the path in readable form.
func (l leaf) String() string {
	var b strings.Builder
	for i, p := range l.path {
		if i > 0 && p[:min(1, len(p))] != "[" {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

// leaves appends the differences between two values, ordered by name, except
// those for which skip returns true.
func leaves(out []leaf, path []string, before, after any, skip func(path []string) bool) []leaf {
	if skip != nil && skip(path) || equal(before, after) {
		return out
	}
	old, oldMap := before.(map[string]any)
	now, nowMap := after.(map[string]any)
	oldList, wasList := before.([]any)
	nowList, isList := after.([]any)
	whole := before == nil || after == nil
	switch {
	case oldMap && nowMap, whole && len(old)+len(now) > 0 && !inList(path):
		for _, name := range names(old, now) {
			out = leaves(out, append(slices.Clone(path), name), old[name], now[name], skip)
		}
		return out
	case wasList && isList, whole && (wasList || isList):
		if matched, ok := pairs(oldList, nowList); ok {
			n := len(out)
			for _, p := range matched {
				out = leaves(out, append(slices.Clone(path), "["+p.key+"]"), p.before, p.after, skip)
			}
			if len(out) > n {
				return out
			}
		}
	}
	return append(out, leaf{path, before, after})
}

func inList(path []string) bool {
	return len(path) > 0 && strings.HasPrefix(path[len(path)-1], "[")
}

// names returns the member names of two objects, in order.
func names(a, b map[string]any) []string {
	out := make([]string, 0, len(a)+len(b))
	for name := range a {
		out = append(out, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
