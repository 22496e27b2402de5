// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestRowChanges(t *testing.T) {
	var c RowChanges
	for _, step := range []struct{ row, want string }{
		{`["a",{"x":[1,"],["]},null]`, `[0,"a",0,{"x":[1,"],["]},0,null]`},
		{`["b",{"x":[1,"],["]},null]`, `[0,"b"]`},
		{`["b",{"x":[1,"],["]},3]`, `[2,3]`},
		{`["b",{"x":[1,"],["]},3]`, `[]`},
		{`["c",null,3]`, `[0,"c",0,null]`},
		{`["c",null,3,4]`, `[3,4]`},
		{`["c",null,35,4]`, `[2,35]`},
		{`["c",null,3,4]`, `[2,3]`},
	} {
		if got := string(c.Append([]byte("before"), []byte(step.row))); got != "before"+step.want {
			t.Errorf("%s: %s, want %s", step.row, got, step.want)
		}
	}
}

// TestRowChangesProperty: what the pairs say is the rows.
func TestRowChangesProperty(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	values := []string{`""`, `"a\"]"`, `"\\"`, `null`, `[[],{"a":"}"}]`, `{"b":{}}`, `-1.5`, `-1.5e3`, `[true]`}
	for range 300 {
		var c RowChanges
		columns := 1 + r.IntN(9)
		row := make([]json.RawMessage, columns)
		for range 1 + r.IntN(20) {
			var cells []string
			for range columns {
				cells = append(cells, values[r.IntN(len(values))])
			}
			want := "[" + strings.Join(cells, ",") + "]"
			got := c.Append(nil, []byte(want))
			var pairs []json.RawMessage
			if err := json.Unmarshal(got, &pairs); err != nil {
				t.Fatalf("%s: %v (seed %d)", got, err, seed)
			}
			for i, at := 0, 0; i < len(pairs); i, at = i+2, at+1 {
				var same int
				if err := json.Unmarshal(pairs[i], &same); err != nil {
					t.Fatal(err)
				}
				at += same
				row[at] = pairs[i+1]
			}
			var parts []string
			for _, value := range row {
				parts = append(parts, string(value))
			}
			if back := fmt.Sprintf("[%s]", strings.Join(parts, ",")); back != want {
				t.Fatalf("%s says %s, want %s (seed %d)", got, back, want, seed)
			}
		}
	}
}
