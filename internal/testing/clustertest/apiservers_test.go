// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestReplicaFlags: the environment adds API servers, unless the test names their number.
func TestReplicaFlags(t *testing.T) {
	for _, tt := range []struct {
		number, balance string
		flags, want     []string
	}{
		{"", "request", nil, nil},
		{"3", "", nil, []string{"--apiservers", "3"}},
		{"3", "request", []string{"--fresh"}, []string{"--apiservers", "3", "--balance", "request"}},
		{"3", "request", []string{"--apiservers", "2"}, nil},
	} {
		t.Setenv("WATCHKEEPER_APISERVERS", tt.number)
		t.Setenv("WATCHKEEPER_BALANCE", tt.balance)
		if got := replicas(tt.flags); !slices.Equal(got, tt.want) {
			t.Errorf("%q, %q, %q: %q, want %q", tt.number, tt.balance, tt.flags, got, tt.want)
		}
	}
}

// TestAPIServers: the URLs are those of the API servers themselves, not the balancer's.
func TestAPIServers(t *testing.T) {
	for state, want := range map[string][]string{
		`{"ports":{"etcd":1,"kube-apiserver":2}}`: {"https://127.0.0.1:2"},
		`{"ports":{"etcd":1,"kube-apiserver":2,"kube-apiserver-1":3,"kube-apiserver-2":4,"kube-apiserver-3":5}}`: {
			"https://127.0.0.1:3", "https://127.0.0.1:4", "https://127.0.0.1:5",
		},
	} {
		c := &Cluster{Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(c.Dir, "state.json"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.APIServers(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", state, got, err, want)
		}
	}
}
