// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strings"
	"testing"
)

// TestBrief: what says nothing goes, and a long message is cut between words, without half a
// quotation.
func TestBrief(t *testing.T) {
	long := strings.Repeat("word ", 12) + `failed to pull "registry.example/` + strings.Repeat("a", 120) + `" at ` + strings.Repeat("last ", 10) + "not found."
	for message, want := range map[string]string{
		"Kubelet stopped posting node status.":                                   "Kubelet stopped posting node status",
		"rpc error: code = NotFound desc = not found":                            "not found",
		"0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are": "0/4 nodes are available: 4 Insufficient cpu",
		long: strings.Repeat("word ", 12) + "… at " + strings.Repeat("last ", 10) + "not found",
	} {
		if got := Brief(message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, test := range [][3]string{
		{"SomeResourcesRemain", "Some resources are remaining", "Some resources are remaining"},
		{"NodeStatusUnknown", "Kubelet stopped posting node status", "NodeStatusUnknown: Kubelet stopped posting node status"},
		{"InsufficientPods", "", "InsufficientPods"},
	} {
		if got := Concise(test[0], test[1]); got != test[2] {
			t.Errorf("%q, want %q", got, test[2])
		}
	}
}
