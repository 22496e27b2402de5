// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

// TestMetricsAreDocumented: docs/operations.md and docs/shared-mode.md have every metric of
// the program, by its full name, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	selection, err := recorder.Select([]string{"core"}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	auditing := audit.DefaultOptions()
	auditing.PolicyFile, auditing.LogPath = policy, filepath.Join(t.TempDir(), "audit.log")
	s, err := newServer(t.Context(), Options{
		RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Address: "127.0.0.1",
		Record:  RecordOptions{Dir: t.TempDir(), Select: selection},
		Gateway: gateway.Options{Shared: &access.SharedOptions{}}, Cert: CertOptions{Dir: t.TempDir()}, Audit: auditing,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.main.listener.Close()
	defer func() { // of the followers of the cluster's CAs
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.gw.Run(ended); err != nil {
			t.Error(err)
		}
	}()
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		s.registry.Describe(descs)
	}()
	var names []string
	name := regexp.MustCompile(`fqName: "(watchkeeper_\w+)"`)
	for d := range descs {
		if m := name.FindStringSubmatch(d.String()); m != nil {
			names = append(names, m[1])
		}
	}
	if len(names) < 30 {
		t.Errorf("only %d metrics: %v", len(names), names)
	}
	var text []byte
	for _, doc := range []string{"operations.md", "shared-mode.md"} {
		more, err := os.ReadFile("../../../docs/" + doc)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	documented := regexp.MustCompile(`watchkeeper_\w+`).FindAllString(string(text), -1)
	for _, n := range names {
		if !slices.Contains(documented, n) {
			t.Errorf("%s is not documented", n)
		}
	}
	for _, n := range documented {
		if !slices.Contains(names, n) {
			t.Errorf("%s is documented, but does not exist", n)
		}
	}
	if strings.Contains(string(text), "`…_") {
		t.Error("a metric has an abbreviated name, which nobody can search for")
	}
}
