// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// theCluster starts a control plane with the test's custom resource, once, and
// only on demand: the tests of the validators need none.
var theCluster = sync.OnceValues(func() (*clustertest.Cluster, error) {
	c, err := clustertest.Start(3)
	if err != nil {
		return nil, err
	}
	cluster = c
	file := filepath.Join(c.Dir, "widgets.yaml")
	if err := os.WriteFile(file, []byte(definition), 0o644); err != nil {
		return nil, err
	}
	if err := kubectl(c, "apply", "-f", file); err != nil {
		return nil, err
	}
	return c, kubectl(c, "wait", "--for=condition=Established", "--timeout="+clusterTimeout.String(), "crd/widgets.robust.watchkeeper.dev")
})

var cluster *clustertest.Cluster // nil unless started

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // client-go reports each broken connection
	code := m.Run()
	if cluster != nil {
		cluster.Close()
	}
	os.Exit(code)
}

// kubectl runs kubectl against the API server itself.
func kubectl(c *clustertest.Cluster, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout+time.Minute)
	defer cancel()
	cmd := c.Kubectl(ctx)
	cmd = exec.CommandContext(ctx, cmd.Args[0], append(cmd.Args[1:], args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.robust.watchkeeper.dev}
spec:
  group: robust.watchkeeper.dev
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              pad: {type: string}
              n: {type: integer}
`
