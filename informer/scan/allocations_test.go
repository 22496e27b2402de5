// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package scan

import "testing"

// TestRowAllocations: a row is made without garbage for each name in the object. With the
// race detector, pools forget what they hold.
func TestRowAllocations(t *testing.T) {
	p, err := ParseRows(`metadata.labels,spec.nodeName,spec.containers[*].image,spec.containers[?(@.name=="d")].name`)
	if err != nil {
		t.Fatal(err)
	}
	var c RowChanges
	var row, out []byte
	if n := testing.AllocsPerRun(100, func() {
		row = p.AppendRow(row[:0], projected)
		out = c.Append(out[:0], row)
	}); n > 5 {
		t.Errorf("%v allocations", n)
	}
}
