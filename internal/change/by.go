// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import "reflect"

// A Manager is one who wrote to an object, as its managedFields have it.
type Manager struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"` // Apply or Update
	Subresource string `json:"subresource,omitempty"`
	Time        string `json:"time,omitempty"` // RFC 3339, to the second
}

// changedManagers returns the managers whose entry is new or another one. Two
// updates of one manager within a second, of the same fields, leave its entry
// as it is: the second is nobody's.
func changedManagers(before, after map[string]any) []Manager {
	type key struct {
		Manager
		apiVersion string
	}
	old := map[key]any{}
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
		if was, ok := old[key{m, text(entry["apiVersion"])}]; !ok || !reflect.DeepEqual(was, entry) {
			m.Time = text(entry["time"])
			out = append(out, m)
		}
	}
	return out
}

func managerOf(entry map[string]any) Manager {
	return Manager{Manager: text(entry["manager"]), Operation: text(entry["operation"]), Subresource: text(entry["subresource"])}
}
