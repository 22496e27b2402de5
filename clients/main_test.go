// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

var (
	cluster *clustertest.Cluster
	gw      *clustertest.Gateway
	// outages are the kills of the API server that the parallel tests share.
	outages *clustertest.Outages
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if os.Getenv(h2specAddress) != "" {
			return m.Run()
		}
		// Tests that share an outage wait for each other: all of them have to run.
		err := flag.Set("test.parallel", "64")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if cluster, err = clustertest.Start(3); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer cluster.Close()
		// For TestNodes, which finds it as other programs do.
		if os.Getenv("LOCALCLUSTER_BIN") == "" {
			if err := os.Setenv("LOCALCLUSTER_BIN", "../bin/localcluster"); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		outages = cluster.Outages()
		if gw, err = cluster.Gateway(); err == nil {
			err = createWidgets()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// The clients log much while the API server is down.
		klog.SetLogger(logr.Discard())
		ctrl.SetLogger(logr.Discard())
		code := m.Run()
		if exit := gw.Terminate(); exit != 0 {
			fmt.Fprintf(os.Stderr, "watchkeeper ended with %d on SIGTERM:\n%s", exit, gw.Log())
			return 1
		}
		return code
	}())
}

// A side is the server that a client uses.
type side string

const (
	direct  side = "direct"
	gateway side = "gateway"
)

var sides = []side{direct, gateway}

// config returns a new client configuration.
func (s side) config() *rest.Config {
	if s == gateway {
		return &rest.Config{Host: gw.URL, QPS: -1}
	}
	return rest.CopyConfig(cluster.Config)
}

// widgets is a custom resource with a status and a selectable field.
var widgets = schema.GroupVersionResource{Group: "clients.example.com", Version: "v1", Resource: "widgets"}

const widgetsDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.clients.example.com}
spec:
  group: clients.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {color: {type: string}, size: {type: integer}}}
          status: {type: object, properties: {size: {type: integer}, message: {type: string}}}
`

func createWidgets() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"apply", "-f", "-"},
		{"wait", "--for=condition=Established", "crd/widgets.clients.example.com"},
	} {
		cmd := cluster.Kubectl(ctx, args...)
		cmd.Stdin = strings.NewReader(widgetsDefinition)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %v: %w: %s", args, err, out)
		}
	}
	return nil
}

// namespace creates a namespace, which is deleted with the cluster.
func namespace(t *testing.T, name string) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(direct.config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a default service account", func() string {
		if _, err := client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	return name
}

// restartUpstream kills and restarts the API server, for a test that runs alone.
func restartUpstream(t *testing.T) {
	t.Helper()
	if err := cluster.SignalAPIServers("KILL"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartAPIServers(); err != nil {
		t.Fatal(err)
	}
}

// kills returns how often a test kills the API server.
func kills(t *testing.T) uint64 {
	t.Helper()
	return clustertest.FromEnv(t, "WATCHKEEPER_KILLS", 1)
}

// outage waits until the API server was killed and is back.
func outage(t *testing.T) {
	t.Helper()
	if err := outages.Next(nil); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until problem returns "".
func eventually(t *testing.T, what string, problem func() string) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		p := problem()
		if p == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting for %s: %s\nthe gateway's log:\n%s", what, p, gw.Log())
		}
		time.Sleep(100 * time.Millisecond)
	}
}
