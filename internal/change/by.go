// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

// A Manager is one who wrote to an object, as its managedFields have it.
type Manager struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"` // Apply or Update
	Subresource string `json:"subresource,omitempty"`
	Time        string `json:"time,omitempty"` // RFC 3339, to the second
}

// changedManagers returns the managers whose entry is new, has another time, or
// has more fields than before: one that has less has lost them to another. Two
// updates of one manager within a second, of the same fields, leave its entry as
// it is: the second is nobody's.
func changedManagers(before, after map[string]any) []Manager {
	type key struct {
		Manager
		apiVersion string
	}
	old := map[key]map[string]any{}
	for _, e := range elements(before, "metadata", "managedFields") {
		if entry, ok := e.(map[string]any); ok {
			old[key{managerOf(entry), text(entry["apiVersion"])}] = entry
		}
	}
	var out []Manager
	for _, e := range elements(after, "metadata", "managedFields") {
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

// gained reports whether a set of fields has some that it had not.
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

func managerOf(entry map[string]any) Manager {
	return Manager{Manager: text(entry["manager"]), Operation: text(entry["operation"]), Subresource: text(entry["subresource"])}
}
