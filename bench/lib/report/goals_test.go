// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strings"
	"testing"
)

// Goals prints each target next to the median, counts missed targets, and leaves out rows
// that were not measured.
func TestGoals(t *testing.T) {
	of := New(io.Discard)
	of.Add("A", 1, Value{1e9, "ns"}, Value{5, "lists"}, Value{40_000, "events/s"}, Value{0, "gaps"})
	of.Add("B", 1, Value{5e8, "ns"})
	for _, v := range []float64{2, 3.5, 2.5} {
		of.Add("C", 1, Value{v, "s"})
	}
	var out strings.Builder
	missed := of.Goals(&out, []Goal{
		{Title: "a", Key: "A ns", Unit: "s", Scale: 1e-9, Max: 3},
		{Title: "b", Key: "A ns", Than: "B ns", Max: 1.25},
		{Title: "c", Key: "A lists", Zero: true},
		{Title: "d", Key: "A gaps", Zero: true},
		{Title: "e", Key: "A events/s", Min: 30_000},
		{Title: "f", Key: "A events/s", Min: 50_000},
		{Title: "g", Key: "A events/s"},
		{Title: "h", Key: "nothing", Max: 1},
		{Title: "i", Key: "C s", Unit: "s", Max: 3},
	})
	want := `| | measured | target | met |
|---|---|---|---|
| a | 1 s | ≤ 3 s | yes |
| b | 2 | ≤ 1.250 | **no** |
| c | 5 | 0 | **no** |
| d | 0 | 0 | yes |
| e | 40000 | ≥ 30000 | yes |
| f | 40000 | ≥ 50000 | **no** |
| g | 40000 | – | – |
| i | 2.500 s | ≤ 3 s | yes |
`
	if got := out.String(); missed != 3 || got != want {
		t.Errorf("%d missed, in\n%s", missed, got)
	}
}
