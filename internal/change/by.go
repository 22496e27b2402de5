// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import "slices"

// A Manager wrote to an object, according to its managedFields.
type Manager struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"` // Apply or Update
	Subresource string `json:"subresource,omitempty"`
	Time        string `json:"time,omitempty"` // RFC 3339, in seconds
}

// changedManagers returns the managers whose entry is new, has another time, or
// has more fields than before. An entry with fewer fields lost them to another
// manager.
func changedManagers(before, after []any) []Manager {
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
	var out []Manager
	for _, e := range after {
		entry, ok := e.(map[string]any)
		if !ok {
			continue
		}
		m := managerOf(entry)
		was, ok := old[key{m, text(entry["apiVersion"])}]
		if !ok || text(was["time"]) != text(entry["time"]) || gained(was["fieldsV1"], entry["fieldsV1"]) {
			m.Time = text(entry["time"])
			out = append(out, m)
		}
	}
	return out
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

// owners returns the managers of the changed fields when no entry reveals them:
// repeated updates of the same fields within a second leave a manager's entry
// as it is. The writer of a field owns it, and no entry is newer than the last
// writer's.
func owners(entries []any, changed []leaf) []Manager {
	newest := ""
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		newest = max(newest, text(entry["time"]))
	}
	var out []Manager
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		owns := func(l leaf) bool { return owns(entry["fieldsV1"], l.path) }
		if newest != "" && text(entry["time"]) == newest && slices.ContainsFunc(changed, owns) {
			m := managerOf(entry)
			m.Time = newest
			out = append(out, m)
		}
	}
	return out
}

// owns reports whether a set of fields has a path, up to the first list in it.
func owns(fields any, path []string) bool {
	set, ok := fields.(map[string]any)
	if len(path) == 0 || path[0] == "" || path[0][0] == '[' {
		return true
	}
	if !ok {
		return false
	}
	below, has := set["f:"+path[0]]
	if has && len(path) > 1 {
		if m, _ := below.(map[string]any); len(m) == 0 {
			return true // owned as a whole
		}
	}
	return has && owns(below, path[1:])
}

func managerOf(entry map[string]any) Manager {
	return Manager{Manager: text(entry["manager"]), Operation: text(entry["operation"]), Subresource: text(entry["subresource"])}
}
