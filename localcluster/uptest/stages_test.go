// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package uptest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStages starts Pods with the stages of demo/scenarios, which simulate what a kubelet
// does, and reads usage from the metrics API.
func TestStages(t *testing.T) {
	t.Parallel()
	c := start(t, t.TempDir(), "--nodes", "2", "--stages", filepath.Join("..", "..", "demo", "scenarios", "stages"))
	c.kubectl("create", "deployment", "cart", "--image=registry.example/shop/cart:1.7.2")
	c.kubectl("create", "deployment", "checkout", "--image=registry.example/shop/checkout:2.4.1")
	c.kubectl("create", "deployment", "recommender", "--image=registry.example/shop/recommender:1.9.0")
	c.kubectl("rollout", "status", "deployment/cart", "--timeout=150s")

	for _, want := range []struct{ app, path, value string }{
		{"checkout", "{.status.containerStatuses[0].state.waiting}", `"message":"Back-off pulling image \"registry.example/shop/checkout:2.4.1\": ErrImagePull: rpc error: code = NotFound`},
		{"checkout", `{.status.conditions[?(@.type=="Ready")].message}`, "containers with unready status: [checkout]"},
		{"recommender", "{.status.containerStatuses[0].lastState}", `"exitCode":137`},
		{"recommender", "{.status.containerStatuses[0].lastState}", `"reason":"OOMKilled"`},
		{"recommender", "{.status.containerStatuses[0].state.waiting}", "back-off 10s restarting failed container=recommender pod=recommender-"},
		{"cart", "{.metadata.managedFields[?(@.subresource==\"status\")].manager}", "kubelet"},
	} {
		eventually(t, want.app+" has "+want.value, func() error {
			out := c.kubectl("get", "pods", "-l", "app="+want.app, "-o", "jsonpath={.items[0]"+want.path[1:])
			if !strings.Contains(out, want.value) {
				return fmt.Errorf("%s is %s", want.path, out)
			}
			return nil
		})
	}
	events := c.kubectl("get", "events", "-o", `jsonpath={range .items[*]}{.involvedObject.fieldPath} {.source.component} {.reason} {.message}{"\n"}{end}`)
	for _, want := range []string{
		"spec.containers{cart} kubelet Started Container started\n",
		"spec.containers{checkout} kubelet Failed Error: ErrImagePull\n",
		"spec.containers{checkout} kubelet Failed Failed to pull image \"registry.example/shop/checkout:2.4.1\": rpc error: code = NotFound desc = ",
		"spec.containers{recommender} kubelet BackOff Back-off restarting failed container recommender in pod recommender-",
	} {
		if !strings.Contains(events+"\n", want) {
			t.Errorf("there is no Event %q in\n%s", want, events)
		}
	}
	c.testMetrics(t)
}

func (c *cluster) testMetrics(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage")
	if err := os.WriteFile(file, []byte("# a comment\ndefault cart- 600m/n 120Mi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.kubectl("scale", "deployment/cart", "--replicas=3")
	c.kubectl("rollout", "status", "deployment/cart", "--timeout=150s")
	metrics := exec.Command(c.bin, "metrics", "--dir", c.dir, "--usage", file)
	if err := metrics.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = metrics.Process.Signal(syscall.SIGTERM)
			_ = metrics.Wait()
		}
	}
	defer end()
	eventually(t, "kubectl top has the usage", func() error {
		out, err := c.try("kubectl", "top", "pods", "-l", "app=cart", "--no-headers")
		if err != nil || strings.Count(out, "200m") != 3 || strings.Count(out, "120Mi") != 3 {
			return fmt.Errorf("kubectl top says %v, %s", err, out)
		}
		return nil
	})
	// The end takes the API away, which would otherwise hold up the deletion of namespaces.
	end()
	if out, err := c.try("kubectl", "get", "apiservice", "v1beta1.metrics.k8s.io"); err == nil || !strings.Contains(out, "NotFound") {
		t.Errorf("after its end, the metrics API is %s (%v)", out, err)
	}
}
