// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// A Manager wrote to an object, according to its managedFields.
type Manager struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"` // Apply or Update
	Subresource string `json:"subresource,omitempty"`
	Time        string `json:"time,omitempty"` // RFC 3339, in seconds
}

// An entry of the later version's managedFields.
type entry struct {
	Manager
	fields map[string]any
	// wrote is set if the entry is new, has another time, or has more fields than before.
	// An entry with fewer fields lost them to another manager.
	wrote bool
	named bool // as an author
}

func compareEntries(before, after []any) []entry {
	type key struct {
		Manager
		apiVersion string
	}
	old := map[key]map[string]any{}
	for _, e := range before {
		if entry, ok := e.(map[string]any); ok {
			old[key{managerOf(entry), text(entry["apiVersion"])}] = entry
		}
	}
	var out []entry
	for _, e := range after {
		now, ok := e.(map[string]any)
		if !ok {
			continue
		}
		m := managerOf(now)
		was, ok := old[key{m, text(now["apiVersion"])}]
		wrote := !ok || text(was["time"]) != text(now["time"]) || gained(was["fieldsV1"], now["fieldsV1"])
		m.Time = text(now["time"])
		out = append(out, entry{Manager: m, fields: members(now, "fieldsV1"), wrote: wrote})
	}
	return out
}

func managerOf(entry map[string]any) Manager {
	return Manager{Manager: text(entry["manager"]), Operation: text(entry["operation"]), Subresource: text(entry["subresource"])}
}

// gained reports whether a set of fields has some that the earlier one had not.
func gained(before, after any) bool {
	old, _ := before.(map[string]any)
	now, _ := after.(map[string]any)
	for name, fields := range now {
		if was, ok := old[name]; !ok || gained(was, fields) {
			return true
		}
	}
	return false
}

// writers returns the managers whose entries reveal that they wrote.
func writers(before, after []any) []Manager {
	return managers(compareEntries(before, after), func(e entry) bool { return e.wrote })
}

func managers(entries []entry, keep func(entry) bool) (out []Manager) {
	for _, e := range entries {
		if keep(e) {
			out = append(out, e.Manager)
		}
	}
	return out
}

// creators returns the managers that created an object: their entries are the oldest, and as
// old as the object. If they have written again, it may be any of the managers.
func creators(v *version) []Manager {
	entries := compareEntries(nil, v.entries)
	oldest := ""
	for _, e := range entries {
		if e.Subresource == "" && e.Time != "" && (oldest == "" || e.Time < oldest) {
			oldest = e.Time
		}
	}
	created, err := time.Parse(time.RFC3339, text(at(v.tree, "metadata", "creationTimestamp")))
	first, err2 := time.Parse(time.RFC3339, oldest)
	told := err == nil && err2 == nil && first.Sub(created).Abs() <= time.Second // the two are set one after the other
	return managers(entries, func(e entry) bool { return !told || e.Subresource == "" && e.Time == oldest })
}

// authors returns the managers that wrote the changed leaves. The writer of a field owns it,
// but its entry may be as before: a time has whole seconds, and the entries of the
// subresource scale have none. A writer that owns nothing of what changed has changed only
// noise. If no one owns a leaf, its writer is unknown: the API server evicts and binds Pods
// without an entry.
func authors(before, after *version, changed []leaf) []Manager {
	entries := compareEntries(before.entries, after.entries)
	newest := "" // no later write has an earlier time
	for _, e := range slices.Concat(before.entries, after.entries) {
		m, _ := e.(map[string]any)
		newest = max(newest, text(m["time"]))
	}
	name := func(which func(entry) bool) (some bool) {
		for i, e := range entries {
			if which(e) {
				entries[i].named, some = true, true
			}
		}
		return some
	}
	for _, l := range changed {
		owner := func(e entry) bool { return len(e.fields) > 0 && owns(e.fields, l.path, after.tree) }
		if name(func(e entry) bool { return e.wrote && owner(e) }) ||
			name(func(e entry) bool { return !e.wrote && (e.Time == "" || e.Time >= newest) && owner(e) }) {
			continue
		}
		if l.after == nil {
			name(func(e entry) bool { return e.wrote && e.reaches(l.path) }) // no one owns a missing field
		}
	}
	name(func(e entry) bool { return e.wrote && len(e.fields) == 0 }) // of which nothing more is known
	return managers(entries, func(e entry) bool { return e.named })
}

// reaches reports whether an entry's manager can write to a path.
func (e entry) reaches(path []string) bool {
	switch e.Subresource {
	case "status":
		return path[0] == "status"
	case "scale":
		return slices.Equal(path, []string{"spec", "replicas"})
	}
	return true
}

// owns reports whether a set of fields has a path of a value, or a part of what is there.
func owns(set map[string]any, path []string, value any) bool {
	if len(path) == 0 || len(set) == 0 {
		return true // empty: owned as a whole
	}
	if inList(path[:1]) {
		list, _ := value.([]any)
		for _, element := range list {
			if !hasKey(element, path[0]) {
				continue
			}
			for name, below := range set {
				fields, _ := below.(map[string]any)
				if identifies(name, element) && owns(fields, path[1:], element) {
					return true
				}
			}
		}
		return false
	}
	below, ok := set["f:"+path[0]].(map[string]any)
	m, _ := value.(map[string]any)
	return ok && owns(below, path[1:], m[path[0]])
}

// hasKey reports whether a path names an element of a list by one of its keys.
func hasKey(element any, name string) bool {
	return "["+elementKey(element, "")+"]" == name ||
		slices.ContainsFunc(keyMembers, func(member string) bool { return "["+elementKey(element, member)+"]" == name })
}

// identifies reports whether a name in a set of fields, such as k:{"type":"Ready"} or
// v:"a/b", is that of an element of a list.
func identifies(name string, element any) bool {
	kind, key, _ := strings.Cut(name, ":")
	d := json.NewDecoder(strings.NewReader(key))
	d.UseNumber()
	var want any
	if kind != "k" && kind != "v" || d.Decode(&want) != nil {
		return false
	}
	keys, isMap := want.(map[string]any)
	if kind == "v" || !isMap {
		return kind == "v" && equal(want, element)
	}
	m, _ := element.(map[string]any)
	for member, value := range keys {
		if !equal(m[member], value) {
			return false
		}
	}
	return true
}
