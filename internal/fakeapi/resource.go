// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// A Resource is a resource of a server.
type Resource struct {
	Group, Version string
	Name, Kind     string
	Namespaced     bool
	ShortNames     []string
	// Verbs are those in discovery; nil means get, list and watch. The server
	// answers all of them in any case.
	Verbs []string
	// Columns are the columns of a Table, and Cells returns an object's row; nil
	// means only the name. An object has its Go type if client-go's scheme has
	// one, and is unstructured otherwise.
	Columns []metav1.TableColumnDefinition
	Cells   func(runtime.Object) []any
}

// Resources of the API server that tests use.
var (
	Pods        = Resource{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true, ShortNames: []string{"po"}}
	ConfigMaps  = Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Namespaced: true, ShortNames: []string{"cm"}}
	Secrets     = Resource{Version: "v1", Name: "secrets", Kind: "Secret", Namespaced: true}
	Nodes       = Resource{Version: "v1", Name: "nodes", Kind: "Node", ShortNames: []string{"no"}}
	Deployments = Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Namespaced: true, ShortNames: []string{"deploy"}}
)

// plain returns the resource as package informertest has it.
func (r Resource) plain() informertest.Resource {
	return informertest.Resource{
		Group: r.Group, Version: r.Version, Name: r.Name, Kind: r.Kind, Namespaced: r.Namespaced, ShortNames: r.ShortNames, Verbs: r.Verbs,
	}
}

func (r Resource) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// FullName returns the name of the resource in calls of a Server: "pods", or
// "things.example.org".
func (r Resource) FullName() string { return r.plain().FullName() }

func (r Resource) apiVersion() string { return r.plain().APIVersion() }

func (r Resource) columns() []metav1.TableColumnDefinition {
	if r.Columns == nil {
		return []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}
	}
	return r.Columns
}

func (r Resource) cells(o runtime.Object) []any {
	if r.Cells != nil {
		return r.Cells(o)
	}
	a, err := meta.Accessor(o)
	if err != nil {
		return []any{""}
	}
	return []any{cmp.Or(a.GetName(), "")}
}
