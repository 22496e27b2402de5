// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// apply creates or changes the objects of a manifest by server-side apply. Objects
// without a namespace are put in the given one. It sends requests to the API
// server itself: a kubectl process costs a hundred times as much.
func apply(t *testing.T, manifest string, namespace ...string) {
	t.Helper()
	client := anyObjects(t)
	kinds := kindsOf(t)
	for documents := yaml.NewYAMLToJSONDecoder(strings.NewReader(manifest)); ; {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if o.Object == nil {
			continue
		}
		kind := o.GroupVersionKind()
		mapping, err := kinds.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) { // its definition is new
			eventually(t, kind.String(), func() bool {
				kinds = kindsOf(t)
				mapping, err = kinds.RESTMapping(kind.GroupKind(), kind.Version)
				return err == nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		objects := dynamic.ResourceInterface(client.Resource(mapping.Resource))
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if o.GetNamespace() == "" && len(namespace) == 1 {
				o.SetNamespace(namespace[0])
			}
			objects = client.Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		if _, err := objects.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			t.Fatalf("%s %s: %v", kind, o.GetName(), err)
		}
	}
}

// anyObjects returns a client of the API server for objects of all kinds.
func anyObjects(t *testing.T) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandler = rest.NoWarnings{} // about deprecated versions
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// definitions returns a client of the API server for CustomResourceDefinitions.
func definitions(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	return anyObjects(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// kindsOf gets the resources of the API server.
func kindsOf(t *testing.T) meta.RESTMapper {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups)
}

// established waits until all API servers serve a definition. Each one learns of it
// separately, and makes its watch cache at the first request.
func established(t *testing.T, definition string) {
	t.Helper()
	var spec map[string]any
	eventually(t, definition+", established", func() bool {
		o, err := definitions(t).Get(t.Context(), definition, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			if c["type"] == "Established" && c["status"] == "True" {
				spec, _, _ = unstructured.NestedMap(o.Object, "spec")
				return true
			}
		}
		return false
	})
	client, _ := direct(t)
	plural, _, _ := unstructured.NestedString(spec, "names", "plural")
	versions, _, _ := unstructured.NestedSlice(spec, "versions")
	for _, up := range apiServers(t) {
		for _, v := range versions {
			v, _ := v.(map[string]any)
			if v["served"] != true {
				continue
			}
			url := fmt.Sprintf("%s/apis/%s/%s/%s?resourceVersion=0", up, spec["group"], v["name"], plural)
			eventually(t, url, func() bool {
				code, _ := get(t, client, url)
				return code == http.StatusOK
			})
		}
	}
}
