// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

func TestBy(t *testing.T) {
	before := object(t, `{kind: Pod, metadata: {managedFields: [
  {manager: same, operation: Update, apiVersion: v1, time: "1"}, {manager: same, operation: Update, apiVersion: v2, time: "1"},
  {manager: later, operation: Apply, time: "1"}, {manager: gone, operation: Update},
  {manager: loser, operation: Update, time: "1", fieldsV1: {"f:spec": {"f:replicas": {}, "f:x": {}}}},
  {manager: winner, operation: Update, time: "1", fieldsV1: {"f:spec": {"f:x": {}}}}]}}`, 1)
	after := object(t, `{kind: Pod, metadata: {managedFields: [
  {manager: same, operation: Update, apiVersion: v1, time: "1"}, {manager: same, operation: Update, apiVersion: v2, time: "1"},
  {manager: later, operation: Apply, time: "2"}, {manager: new, operation: Update, subresource: status, time: "2"},
  {manager: loser, operation: Update, time: "1", fieldsV1: {"f:spec": {"f:x": {}}}},
  {manager: winner, operation: Update, time: "1", fieldsV1: {"f:spec": {"f:x": {}, "f:replicas": {}}}}]}}`, 2)
	c, err := new(change.Comparer).Between(before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := []change.Manager{
		{Manager: "later", Operation: "Apply", Time: "2"}, {Manager: "new", Operation: "Update", Subresource: "status", Time: "2"},
		{Manager: "winner", Operation: "Update", Time: "1"},
	}
	if diff := cmp.Diff(want, c.By); diff != "" {
		t.Error(diff)
	}
}

// TestOwners: an update within the second of one before it leaves no trace but
// who owns what changed.
func TestOwners(t *testing.T) {
	const fields = `metadata: {managedFields: [
  {manager: controller, operation: Update, subresource: status, time: "2", fieldsV1: {"f:status": {"f:readyReplicas": {}, "f:conditions": {}}}},
  {manager: person, operation: Update, time: "2", fieldsV1: {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}}}},
  {manager: earlier, operation: Update, time: "1", fieldsV1: {"f:status": {"f:readyReplicas": {}}}}]}`
	for _, tc := range []struct{ before, after, want string }{
		{"status: {readyReplicas: 1}", "status: {readyReplicas: 2}", "controller/status"},
		{"status: {conditions: [{type: A, status: x}]}", "status: {conditions: [{type: A, status: y}]}", "controller/status"},
		{"spec: {replicas: 1}", "spec: {replicas: 2}", "person"},
		{"spec: {template: {spec: {containers: [{name: a, image: x}]}}}", "spec: {template: {spec: {containers: [{name: a, image: y}]}}}", "person"},
		{"spec: {paused: true}", "spec: {paused: false}", ""},
	} {
		c, err := new(change.Comparer).Between(object(t, "{kind: Deployment, "+fields+", "+tc.before+"}", 1), object(t, "{kind: Deployment, "+fields+", "+tc.after+"}", 2))
		if err != nil {
			t.Fatal(err)
		}
		if got := authorsOf(c); got != tc.want {
			t.Errorf("%s by %q, not %q", tc.after, got, tc.want)
		}
	}
}

// authorsOf names the authors of a change, and their subresources.
func authorsOf(c *change.Change) string {
	var names []string
	for _, m := range c.By {
		if m.Subresource != "" {
			m.Manager += "/" + m.Subresource
		}
		names = append(names, m.Manager)
	}
	return strings.Join(names, " ")
}

// TestAuthors: the managedFields are those that kube-apiserver writes. An eviction and a
// binding have no entry, and the entry of the subresource scale no time.
func TestAuthors(t *testing.T) {
	const (
		podSpec = `{manager: kubectl-run, operation: Update, apiVersion: v1, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:image": {}, "f:name": {}, "f:ports": {".": {}, 'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {}, "f:hostPort": {}}}}}}}},`
		kwok    = `{manager: kwok, operation: Update, subresource: status, apiVersion: v1, time: "2026-01-01T00:00:02Z", fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}}, "f:phase": {}}}},`
		later   = `{manager: kwok, operation: Update, subresource: status, apiVersion: v1, time: "2026-01-01T00:00:09Z", fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}}, "f:phase": {}}}},`
		create  = `{manager: kubectl-create, operation: Update, apiVersion: apps/v1, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {".": {}, 'v:"a/b"': {}}}, "f:spec": {"f:strategy": {"f:type": {}}, "f:selector": {}}}},`
		scale   = `{manager: kubectl, operation: Update, subresource: scale, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}},`
		kcm     = `{manager: kube-controller-manager, operation: Update, subresource: status, apiVersion: apps/v1, time: "2026-01-01T00:00:01Z", fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:replicas": {}, "f:unavailableReplicas": {}, "f:observedGeneration": {}}}},`
		kcm2    = `{manager: kube-controller-manager, operation: Update, subresource: status, apiVersion: apps/v1, time: "2026-01-01T00:00:05Z", fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:replicas": {}, "f:unavailableReplicas": {}, "f:observedGeneration": {}}}},`
		hpa     = `{manager: hpa, operation: Update, subresource: scale, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}},`
		ready   = `{type: Ready, status: "True"}`
		evicted = `{type: DisruptionTarget, status: "True", reason: EvictionByEvictionAPI}`
	)
	for _, tc := range []struct{ name, entries, then, before, after, want string }{
		{"an eviction", podSpec + kwok, podSpec + kwok, "status: {conditions: [" + ready + "]}", "status: {conditions: [" + ready + ", " + evicted + "]}", ""},
		{"an eviction, and a heartbeat", podSpec + kwok, podSpec + later, "status: {conditions: [" + ready + "]}", "status: {conditions: [" + ready + ", " + evicted + "]}", ""},
		{"an eviction, and another condition", podSpec + kwok, podSpec + later, "status: {conditions: [" + ready + "]}", `status: {conditions: [{type: Ready, status: "False"}, ` + evicted + "]}", "kwok/status"},
		{"a condition with an owner", podSpec + kwok, podSpec + kwok, "status: {conditions: [" + ready + "]}", `status: {conditions: [{type: Ready, status: "False"}]}`, "kwok/status"},
		{"a binding", podSpec, podSpec, "spec: {}", "spec: {nodeName: n}", ""},
		{"an element that has another key here", podSpec, podSpec, "spec: {containers: [{name: app, ports: [{name: web, containerPort: 80, protocol: TCP, hostPort: 1}]}]}",
			"spec: {containers: [{name: app, ports: [{name: web, containerPort: 80, protocol: TCP, hostPort: 2}]}]}", "kubectl-run"},
		{"an element of a set", create, create, "metadata: {finalizers: [c/d]}", "metadata: {finalizers: [c/d, a/b]}", "kubectl-create"},
		{"another element of a set", create, create, "metadata: {finalizers: [a/b]}", "metadata: {finalizers: [a/b, c/d]}", ""},
		{"inside of what is owned as a whole", create, create, "spec: {selector: {matchLabels: {a: x}}}", "spec: {selector: {matchLabels: {a: y}}}", "kubectl-create"},
		{"the first scale", create + kcm, create + scale + kcm, "spec: {replicas: 1}", "spec: {replicas: 2}", "kubectl/scale"},
		{"the second scale", create + scale + kcm, create + scale + kcm, "spec: {replicas: 2}", "spec: {replicas: 3}", "kubectl/scale"},
		{"a scale by another", create + scale + kcm, create + hpa + kcm, "spec: {replicas: 2}", "spec: {replicas: 3}", "hpa/scale"},
		{"a controller after the second scale", create + scale + kcm, create + scale + kcm2, "status: {replicas: 2}", "status: {replicas: 3}", "kube-controller-manager/status"},
		{"a range with the second scale", create + scale + kcm, create + scale + kcm2, "spec: {replicas: 2}, status: {replicas: 2}", "spec: {replicas: 3}, status: {replicas: 3}",
			"kubectl/scale kube-controller-manager/status"},
		{"a range of which only the scale shows", create + scale + kcm, create + scale + kcm2, "spec: {replicas: 2}, status: {observedGeneration: 1}",
			"spec: {replicas: 3}, status: {observedGeneration: 2}", "kubectl/scale"},
		{"a counter that is gone", create + scale + kcm, create + scale + kcm2, "spec: {replicas: 2}, status: {unavailableReplicas: 1}", "spec: {replicas: 3}, status: {}",
			"kubectl/scale kube-controller-manager/status"},
		{"a label that is gone", create + kcm, create + kcm2, "metadata: {labels: {app: a}}", "metadata: {labels: {}}", ""},
		{"a write before the last one", create + kcm2, create + kcm2, "metadata: {labels: {app: a}}", "metadata: {labels: {app: b}}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			version := func(entries, fields string) string {
				managed := "managedFields: [" + strings.TrimSuffix(entries, ",") + "]"
				if rest, ok := strings.CutPrefix(fields, "metadata: {"); ok {
					return "{kind: Thing, metadata: {" + managed + ", " + rest + "}"
				}
				return "{kind: Thing, metadata: {" + managed + "}, " + fields + "}"
			}
			c, err := new(change.Comparer).Between(object(t, version(tc.entries, tc.before), 1), object(t, version(tc.then, tc.after), 2))
			if err != nil {
				t.Fatal(err)
			}
			if got := authorsOf(c); got != tc.want {
				t.Errorf("%q is by %q, not %q", c.Summary, got, tc.want)
			}
		})
	}
}

// TestCreators: a manager that has written to an object later is not the one that created it.
func TestCreators(t *testing.T) {
	const (
		create = `{manager: kubectl-create, operation: Update, time: "2026-01-01T00:00:00Z"}`
		status = `{manager: kcm, operation: Update, subresource: status, time: "2026-01-01T00:00:00Z"}`
		scale  = `{manager: kubectl, operation: Update, subresource: scale}`
		label  = `{manager: kubectl-label, operation: Update, time: "2026-01-01T00:00:03Z"}`
	)
	for _, tc := range []struct{ created, entries, want string }{
		{"2026-01-01T00:00:00Z", label + "," + create + "," + scale + "," + status, "kubectl-create"},
		{"2025-12-31T23:59:59Z", create + "," + label, "kubectl-create"},
		{"2025-12-31T00:00:00Z", create + "," + label, "kubectl-create kubectl-label"}, // either has written again
		{"2026-01-01T00:00:00Z", scale, "kubectl/scale"},
	} {
		o := object(t, `{kind: Thing, metadata: {creationTimestamp: "`+tc.created+`", managedFields: [`+tc.entries+`]}}`, 1)
		c, err := new(change.Comparer).Between(nil, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := authorsOf(c); got != tc.want {
			t.Errorf("of %s: by %q, not %q", tc.created, got, tc.want)
		}
	}
}

// TestDefaulted: what the API server changes with a write was written by who wrote, not by who
// owns the field: an annotation that counts templates, of who created the object.
func TestDefaulted(t *testing.T) {
	set := func(generation, image, more string) string {
		return `{kind: DaemonSet, metadata: {annotations: {example.com/templates: "` + generation + `"}, managedFields: [
  {manager: apply, operation: Update, time: "1", fieldsV1: {"f:metadata": {"f:annotations": {"f:example.com/templates": {}}}}}` + more + `]}, spec: {image: ` + image + `}}`
	}
	c, err := new(change.Comparer).Between(object(t, set("1", "a", ""), 1), object(t, set("2", "b", `, {manager: kubectl-set, operation: Update, time: "2", fieldsV1: {"f:spec": {"f:image": {}}}}`), 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := authorsOf(c); got != "kubectl-set" {
		t.Errorf("by %q", got)
	}
}
