// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package pasttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// The other resources of a [Cluster].
var (
	Nodes       = kube.Resource{Version: "v1", Name: "nodes"}
	Secrets     = kube.Resource{Version: "v1", Name: "secrets"}
	Deployments = kube.Resource{Group: "apps", Version: "v1", Name: "deployments"}
)

// A Cluster is a history of several resources, in memory, that a test writes.
type Cluster struct {
	Store *history.Store
	Start time.Time // an hour ago

	t testing.TB
}

// NewCluster returns an empty history.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	return &Cluster{t: t, Store: open(t, history.Options{MaxAge: 48 * time.Hour, MaxBytes: 1 << 30}), Start: time.Now().Add(-time.Hour).Truncate(time.Second)}
}

// At returns the time so many seconds after the start.
func (c *Cluster) At(seconds float64) time.Time {
	return c.Start.Add(time.Duration(seconds * float64(time.Second)))
}

// Thing parses an object from YAML, and sets its name, namespace, RV and uid.
func Thing(t testing.TB, key kube.Key, rv uint64, text string) *scan.Object {
	t.Helper()
	tree := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	meta, _ := tree["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["resourceVersion"] = key.Name(), fmt.Sprint(rv)
	if ns := key.Namespace(); ns != "" {
		meta["namespace"] = ns
	}
	if meta["uid"] == nil {
		meta["uid"] = "uid-of-" + key.Name()
	}
	tree["metadata"] = meta
	b, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	o, err := scan.ParseObject(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Stream begins a stream with objects.
func (c *Cluster) Stream(r kube.Resource, rv uint64, seconds float64, objects ...*scan.Object) *history.Stream {
	c.t.Helper()
	st, err := c.Store.Stream(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.Begin(st, rv, seconds, objects...)
	return st
}

// Begin begins an epoch with objects.
func (c *Cluster) Begin(st *history.Stream, rv uint64, seconds float64, objects ...*scan.Object) {
	c.t.Helper()
	form, err := scan.ParseTemplate(`{"kind":"X","apiVersion":"v1","metadata":{}}`)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := st.Begin(history.Form{ListKind: "XList", Item: form}, slices.Values(objects), rv, c.At(seconds)); err != nil {
		c.t.Fatal(err)
	}
}

// Event appends an event, observed RV - 100 seconds after the start.
func (c *Cluster) Event(st *history.Stream, typ kube.EventType, key kube.Key, rv uint64, text string) {
	c.t.Helper()
	c.Events(st, rv, history.Event{Type: typ, Object: Thing(c.t, key, rv, text), At: c.At(float64(rv) - 100)})
}

// Events appends events and the RV up to which there is no other.
func (c *Cluster) Events(st *history.Stream, rv uint64, events ...history.Event) {
	c.t.Helper()
	if err := st.Append(events, rv, c.At(float64(rv)-100)); err != nil {
		c.t.Fatal(err)
	}
}

// Fill writes a Deployment that is scaled, gets another image, is deleted and created
// again; a Node with heartbeats; Pods; Secrets.
func (c *Cluster) Fill() {
	c.t.Helper()
	deployment := func(replicas int, image, more string) string {
		return fmt.Sprintf(`{kind: Deployment, apiVersion: apps/v1, metadata: {generation: %d%s}, spec: {replicas: %d, template: {spec: {containers: [{name: app, image: %q}]}}}}`, replicas, more, replicas, image)
	}
	by := func(manager, time string) string {
		return fmt.Sprintf(`, managedFields: [{manager: %s, operation: Update, time: %q}]`, manager, time)
	}
	d := c.Stream(Deployments, 100, 0,
		Thing(c.t, "default/web", 90, deployment(3, "nginx:1.25", by("kubectl-create", "1"))),
		Thing(c.t, "default/old", 91, deployment(1, "old:1", "")),
		Thing(c.t, "kube-system/dns", 92, deployment(2, "dns:1", ", labels: {app: dns}")))
	c.Event(d, kube.Modified, "default/web", 110, deployment(5, "nginx:1.25", by("kubectl-scale", "2")))
	c.Event(d, kube.Modified, "default/web", 111, deployment(5, "nginx:1.25", by("kube-controller-manager", "3")))
	c.Event(d, kube.Modified, "default/web", 112, deployment(5, "nginx:1.25", by("kube-controller-manager", "4")))
	c.Event(d, kube.Modified, "default/web", 120, deployment(5, "nginx:1.27", by("kubectl-set", "5")))
	c.Event(d, kube.Deleted, "default/old", 130, deployment(1, "old:1", ""))
	c.Event(d, kube.Modified, "kube-system/dns", 135, deployment(2, "dns:1", ", labels: {app: other}"))
	c.Event(d, kube.Deleted, "default/web", 140, deployment(5, "nginx:1.27", ""))
	c.Event(d, kube.Added, "default/web", 150, deployment(1, "nginx:1.27", ", uid: another"))
	if err := d.AppendGap([]history.Event{
		{Type: kube.Modified, Object: Thing(c.t, "default/web", 165, deployment(2, "nginx:1.27", ", uid: another")), Inferred: true, At: c.At(80)},
	}, 170, c.At(80)); err != nil {
		c.t.Fatal(err)
	}
	c.Events(d, 200)

	node := func(beat int, ready string) string {
		return fmt.Sprintf(`{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: %q, reason: R, lastHeartbeatTime: "%d"}]}}`, ready, beat)
	}
	n := c.Stream(Nodes, 100, 0, Thing(c.t, "n1", 80, node(0, "True")))
	for rv := uint64(101); rv < 160; rv++ {
		c.Event(n, kube.Modified, "n1", rv, node(int(rv), map[bool]string{true: "True", false: "Unknown"}[rv < 145]))
	}

	p := c.Stream(Pods, 100, 0)
	c.Event(p, kube.Added, "default/a", 105, `{kind: Pod, apiVersion: v1, spec: {nodeName: n1}}`)
	c.Event(p, kube.Added, "kube-system/b", 106, `{kind: Pod, apiVersion: v1, spec: {nodeName: n2}}`)
	c.Event(p, kube.Deleted, "default/a", 155, `{kind: Pod, apiVersion: v1, spec: {nodeName: n1}}`)

	c.Stream(Secrets, 100, 0, Thing(c.t, "default/s", 70, `{kind: Secret, apiVersion: v1}`))
}
