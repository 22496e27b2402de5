// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package testcluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/localcluster/testcluster"
)

// run runs a command of the cluster.
func run(t *testing.T, c *testcluster.Cluster, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	out, err := c.Command(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestCluster: the cluster has the Nodes and the flags that were asked for, Pods run, and
// nothing is left after Stop.
func TestCluster(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	c := testcluster.Start(t, testcluster.Options{Nodes: 2, Flags: []string{"--runtime-config=autoscaling/v1=false"}})
	if nodes := strings.Fields(run(t, c, "kubectl", "get", "nodes", "-o", "name")); len(nodes) != 2 {
		t.Errorf("Nodes: %q", nodes)
	}
	run(t, c, "kubectl", "create", "deployment", "web", "--image", "web", "--replicas", "3")
	run(t, c, "kubectl", "rollout", "status", "deployment/web", "--timeout", timeout.String())

	// The kubeconfig is complete: a copy in another place works.
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(copied, c.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := run(t, c, "kubectl", "--kubeconfig", copied, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"), c.URL(); got != want {
		t.Errorf("server of the kubeconfig: %q, want %q", got, want)
	}
	if got := run(t, c, "kubectl", "--kubeconfig", copied, "get", "--raw", "/readyz"); got != "ok" {
		t.Errorf("readyz: %q", got)
	}
	if versions := run(t, c, "kubectl", "api-versions"); strings.Contains(versions, "autoscaling/v1\n") {
		t.Errorf("the API server does not have the flag, and serves\n%s", versions)
	}

	for range 2 {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	checkNone(t, temp)
}

// TestDir: the next cluster in the same folder has the same data, and the number of Nodes
// of the one before.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	for i, nodes := range []int{-1, 0} {
		c := testcluster.Start(t, testcluster.Options{Dir: dir, Nodes: nodes})
		if i == 0 {
			run(t, c, "kubectl", "create", "configmap", "kept")
		} else {
			run(t, c, "kubectl", "get", "configmap", "kept")
		}
		if got := run(t, c, "kubectl", "get", "nodes", "-o", "name"); got != "" {
			t.Errorf("Nodes: %q", got)
		}
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}
