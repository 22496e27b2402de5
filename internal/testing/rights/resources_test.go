// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// A resource is one that requests and rules name.
type resource struct {
	group, version, plural, kind string
	cluster                      bool // cluster-scoped
	subs                         []string
	recorded                     bool           // by the gateway
	unwatched                    bool           // it does not exist, or cannot be listed and watched
	spec                         map[string]any // members of an object, next to its metadata
	made                         bool           // each namespace, or the cluster, has objects a, b and c of it
	nameless                     bool           // its objects have no metadata
	// volatile is set if the components of the cluster change which objects there are.
	volatile bool
}

const widgetGroup = "rights.watchkeeper.dev"

var container = []any{map[string]any{"name": "c", "image": "i"}}

func template(app string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": app}},
		"spec":     map[string]any{"containers": container},
	}
}

// resources are the table that the generator draws from. Pods come several times, as in
// life.
var resources = func() []resource {
	pods := resource{version: "v1", plural: "pods", kind: "Pod", subs: []string{"status", "log", "exec", "eviction", "binding", "ephemeralcontainers"}, recorded: true, made: true,
		spec: map[string]any{"spec": map[string]any{"containers": container}}}
	return []resource{
		pods, pods, pods,
		{version: "v1", plural: "configmaps", kind: "ConfigMap", recorded: true, made: true, volatile: true, spec: map[string]any{"data": map[string]any{"k": "v"}}},
		{version: "v1", plural: "secrets", kind: "Secret", made: true, spec: map[string]any{"stringData": map[string]any{"k": "v"}}},
		{version: "v1", plural: "services", kind: "Service", subs: []string{"status"}, recorded: true, made: true,
			spec: map[string]any{"spec": map[string]any{"clusterIP": "None", "ports": []any{map[string]any{"port": 80}}}}},
		{version: "v1", plural: "serviceaccounts", kind: "ServiceAccount", subs: []string{"token"}, recorded: true, made: true, spec: map[string]any{}},
		{version: "v1", plural: "persistentvolumeclaims", kind: "PersistentVolumeClaim", subs: []string{"status"}, recorded: true, spec: map[string]any{}},
		{version: "v1", plural: "events", kind: "Event", volatile: true, spec: map[string]any{}},
		{version: "v1", plural: "nodes", kind: "Node", cluster: true, subs: []string{"status"}, recorded: true, spec: map[string]any{}},
		{version: "v1", plural: "namespaces", kind: "Namespace", cluster: true, subs: []string{"status"}, recorded: true, spec: map[string]any{}},
		{group: "apps", version: "v1", plural: "deployments", kind: "Deployment", subs: []string{"status", "scale"}, recorded: true, made: true,
			spec: map[string]any{"spec": map[string]any{"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}, "template": template("d")}}},
		{group: "apps", version: "v1", plural: "replicasets", kind: "ReplicaSet", subs: []string{"scale"}, recorded: true, volatile: true,
			spec: map[string]any{"spec": map[string]any{"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}, "template": template("d")}}},
		{group: "batch", version: "v1", plural: "cronjobs", kind: "CronJob", subs: []string{"status"}, recorded: true, spec: map[string]any{}},
		{group: "coordination.k8s.io", version: "v1", plural: "leases", kind: "Lease", volatile: true, spec: map[string]any{}},
		{group: "rbac.authorization.k8s.io", version: "v1", plural: "roles", kind: "Role", recorded: true, spec: map[string]any{"rules": []any{}}},
		{group: "rbac.authorization.k8s.io", version: "v1", plural: "clusterroles", kind: "ClusterRole", cluster: true, recorded: true, spec: map[string]any{"rules": []any{}}},
		{group: widgetGroup, version: "v1", plural: "widgets", kind: "Widget", subs: []string{"status", "scale"}, recorded: true, made: true,
			spec: map[string]any{"spec": map[string]any{"replicas": 1}}},
		{group: widgetGroup, version: "v1", plural: "gadgets", kind: "Gadget", cluster: true, recorded: true, made: true, spec: map[string]any{"spec": map[string]any{}}},
		// One that does not exist, and one that can only be created.
		{group: widgetGroup, version: "v1", plural: "gizmos", kind: "Gizmo", unwatched: true, spec: map[string]any{}},
		{group: "authorization.k8s.io", version: "v1", plural: "selfsubjectaccessreviews", kind: "SelfSubjectAccessReview", cluster: true, unwatched: true, nameless: true,
			spec: map[string]any{"spec": map[string]any{"resourceAttributes": map[string]any{"verb": "list", "resource": "pods"}}}},
	}
}()

// definitions are those of Widgets and Gadgets.
func definitions() []string {
	const text = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]ss.%[4]s"},"spec":{
"group":"%[4]s","scope":"%[3]s","names":{"plural":"%[1]ss","singular":"%[1]s","kind":"%[2]s"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer"}}},"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}]}}`
	return []string{
		fmt.Sprintf(text, "widget", "Widget", "Namespaced", widgetGroup),
		fmt.Sprintf(text, "gadget", "Gadget", "Cluster", widgetGroup),
	}
}

// apiVersion returns that of the resource's objects.
func (r resource) apiVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

// root returns the path of the group and version.
func (r resource) root() string {
	if r.group == "" {
		return "/api/" + r.version
	}
	return "/apis/" + r.group + "/" + r.version
}

// path returns that of the collection, in a namespace unless that is "".
func (r resource) path(namespace string) string {
	if namespace == "" {
		return r.root() + "/" + r.plural
	}
	return r.root() + "/namespaces/" + namespace + "/" + r.plural
}

// object returns an object of the resource as JSON.
func (r resource) object(namespace, name string, labels map[string]string) []byte {
	metadata := map[string]any{"name": name, "labels": labels}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	all := map[string]any{"apiVersion": r.apiVersion(), "kind": r.kind}
	if !r.nameless {
		all["metadata"] = metadata
	}
	for key, value := range r.spec {
		all[key] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // the table above is constant
	}
	return text
}

// oneOf draws an element.
func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// some draws between one and count elements, perhaps the same ones.
func some[T any](r *rand.Rand, count int, all []T) []T {
	drawn := make([]T, 1+r.IntN(count))
	for i := range drawn {
		drawn[i] = oneOf(r, all...)
	}
	return drawn
}

// chance is true in so many of a hundred cases.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }
