// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import "strings"

// A Resource is a resource of a server.
type Resource struct {
	Group, Version string
	Name, Kind     string
	Namespaced     bool
	ShortNames     []string
	// Verbs are those in discovery; nil means get, list and watch. The server
	// answers all of them in any case.
	Verbs []string
	// Status says that the status is a subresource. Then writes of the object
	// leave it as it is, and metadata.generation is kept.
	Status bool
}

// Resources of the API server that tests use.
var (
	Pods        = Resource{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true, ShortNames: []string{"po"}}
	ConfigMaps  = Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Namespaced: true, ShortNames: []string{"cm"}}
	Secrets     = Resource{Version: "v1", Name: "secrets", Kind: "Secret", Namespaced: true}
	Nodes       = Resource{Version: "v1", Name: "nodes", Kind: "Node", ShortNames: []string{"no"}}
	Namespaces  = Resource{Version: "v1", Name: "namespaces", Kind: "Namespace", ShortNames: []string{"ns"}}
	Deployments = Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Namespaced: true, ShortNames: []string{"deploy"}}
	// Events are those that package events of client-go writes. Other than in a cluster,
	// the core group does not have them.
	Events = Resource{Group: "events.k8s.io", Version: "v1", Name: "events", Kind: "Event", Namespaced: true, ShortNames: []string{"ev"}}
	// Leases are those of leader election.
	Leases = Resource{Group: "coordination.k8s.io", Version: "v1", Name: "leases", Kind: "Lease", Namespaced: true}
)

// FullName returns the name of the resource in calls of a Server: "pods", or
// "things.example.org".
func (r Resource) FullName() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// APIVersion returns the group and version as objects have them: "v1", or
// "apps/v1".
func (r Resource) APIVersion() string { return strings.TrimPrefix(r.Group+"/"+r.Version, "/") }

// key returns the key of an object.
func (r Resource) key(namespace, name string) string {
	if r.Namespaced {
		return namespace + "/" + name
	}
	return name
}
