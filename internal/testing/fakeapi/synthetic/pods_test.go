// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"encoding/json"
	"testing"
)

func TestPodsAreRealistic(t *testing.T) {
	seen := map[string]bool{}
	for i := range 2000 {
		p := Pod(i)
		if seen[p.Namespace+"/"+p.Name] || seen[string(p.UID)] {
			t.Errorf("Pod %d: %s/%s %s is not distinct", i, p.Namespace, p.Name, p.UID)
		}
		seen[p.Namespace+"/"+p.Name], seen[string(p.UID)] = true, true
		if i%100 != 0 {
			continue
		}
		whole, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := json.Marshal(p.ManagedFields)
		if err != nil {
			t.Fatal(err)
		}
		proto, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what       string
			size, want int
		}{{"JSON", len(whole), 4500}, {"managedFields", len(fields), 1400}, {"protobuf", len(proto), 2800}} {
			if c.size < c.want*9/10 || c.size > c.want*11/10 {
				t.Errorf("Pod %d: %d bytes of %s, want about %d", i, c.size, c.what, c.want)
			}
		}
	}
}
