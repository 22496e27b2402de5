// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// An ownCluster is the cluster of one test, which ends with it.
type ownCluster struct {
	*clustertest.Cluster
	t      *testing.T
	client *http.Client // of the API server at up
	up     string
}

func startOwn(t *testing.T, args ...string) *ownCluster {
	t.Helper()
	c, err := clustertest.Start(1, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, up, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	return &ownCluster{c, t, client, up}
}

// gateway starts a gateway, whose log the test prints if it fails.
func (c *ownCluster) gateway(args ...string) *clustertest.Gateway {
	c.t.Helper()
	g, err := c.Gateway(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Log(tail(g.Log()))
		}
		g.Terminate()
	})
	return g
}

// command runs kubectl against the API server.
func (c *ownCluster) command(args ...string) {
	c.t.Helper()
	if out, ok := run(c.t, c.Kubectl(c.t.Context()).Args, args...); !ok {
		c.t.Fatalf("kubectl %v: %s", args, out)
	}
}

func (c *ownCluster) apply(manifest string) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.command("apply", "-f", file)
}
