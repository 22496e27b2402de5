// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"testing"
)

func TestKeyOrderIsListOrder(t *testing.T) {
	keys := []Key{MakeKey("ns-a", "x"), MakeKey("ns-a-b", "y"), MakeKey("ns", "z")}
	slices.Sort(keys)
	if want := []Key{"ns-a-b/y", "ns-a/x", "ns/z"}; !slices.Equal(keys, want) {
		t.Errorf("order %v, want %v", keys, want)
	}
}
