// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package words

import "testing"

func TestCount(t *testing.T) {
	for _, test := range []struct {
		n         int
		one, want string
	}{
		{0, "Pod", "0 Pods"}, {1, "Pod", "1 Pod"}, {2, "NetworkPolicy", "2 NetworkPolicies"}, {2, "Gateway", "2 Gateways"},
		{3, "Ingress", "3 Ingresses"}, {2, "Endpoints", "2 Endpoints"}, {2, "box", "2 boxes"},
	} {
		if got := Count(test.n, test.one); got != test.want {
			t.Errorf("Count(%d, %q) = %q, want %q", test.n, test.one, got, test.want)
		}
	}
}
