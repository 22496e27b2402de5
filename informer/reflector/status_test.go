// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import "testing"

// TestStatusAllocations: a reflector's Status allocates nothing.
func TestStatusAllocations(t *testing.T) {
	r := New(Objects(false), &recordingSink{}, Options{})
	r.countRelist("initial")
	before := r.Status()
	r.countRelist("initial")
	if n := testing.AllocsPerRun(100, func() { r.Status() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if before.Relists["initial"] != 1 || r.Status().Relists["initial"] != 2 {
		t.Errorf("%v, %v", before, r.Status())
	}
}
