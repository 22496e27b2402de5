// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// A meta is what a metadata informer keeps.
type meta struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// TestMetadataInformer: an informer of metadata follows the server, by a streaming list and
// by a list and a watch.
func TestMetadataInformer(t *testing.T) {
	for name, o := range map[string]informertest.Options{"streaming": {}, "lists": {NoWatchList: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := informertest.New(o)
				api.Put("pods", `{"metadata":{"name":"a","namespace":"ns","labels":{"x":"1"}},"spec":{"nodeName":"n"}}`)
				network := informertest.NewNetwork(api)
				defer network.Close()
				pods := informer.New(informer.NewSource(network.URL(), network), informer.Resource{Version: "v1", Name: "pods"},
					informer.JSON[meta](), informer.Options{MetadataOnly: true})
				if err := pods.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := pods.WaitSynced(t.Context()); err != nil {
					t.Fatal(err, pods.Status().LastError)
				}
				check := func(want ...string) {
					t.Helper()
					var got []string
					for _, ref := range pods.All() {
						o, err := ref.Object()
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, fmt.Sprint(o.Kind, " ", o.APIVersion, " ", o.Metadata.Name, " ", o.Metadata.Labels, string(o.Spec)))
					}
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Errorf("%q, want %q", got, want)
					}
				}
				check("PartialObjectMetadata meta.k8s.io/v1 a map[x:1]")
				api.Put("pods", `{"metadata":{"name":"b","namespace":"ns"},"spec":{"nodeName":"n"}}`)
				rv := api.Put("pods", `{"metadata":{"name":"a","namespace":"ns","labels":{"x":"2"}},"spec":{"nodeName":"n"}}`)
				if err := pods.WaitRV(t.Context(), fmt.Sprint(rv)); err != nil {
					t.Fatal(err)
				}
				check("PartialObjectMetadata meta.k8s.io/v1 a map[x:2]", "PartialObjectMetadata meta.k8s.io/v1 b map[]")
				rv = api.Delete("pods", "ns/a")
				if err := pods.WaitRV(t.Context(), fmt.Sprint(rv)); err != nil {
					t.Fatal(err)
				}
				check("PartialObjectMetadata meta.k8s.io/v1 b map[]")
			})
		})
	}
}

// TestAccept: the first type that the server has is the one of the response.
func TestAccept(t *testing.T) {
	s := informertest.New(informertest.Options{})
	s.Put("pods", `{"metadata":{"name":"a","namespace":"ns"}}`)
	const list, pods, pod = "/api/v1/pods", "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadataList", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	for i, test := range []struct{ path, accept, want string }{
		{list, pods, "200 PartialObjectMetadataList"},
		{list, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," + pods + ";q=0.9,application/json", "200 PartialObjectMetadataList"},
		{list, "application/json, " + pods, "200 PodList"},
		{list, "application/json;as=Table;g=meta.k8s.io;v=v1,application/json", "200 PodList"},
		{list, pod, "406 Status"},
		{list, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v2", "406 Status"},
		{"/api/v1/namespaces/ns/pods/a", pod, "200 PartialObjectMetadata"},
		{"/api/v1/namespaces/ns/pods/a", pods, "406 Status"},
		{"/api/v1/namespaces/ns/pods/a", "", "200 Pod"},
	} {
		r := httptest.NewRequest(http.MethodGet, test.path, nil)
		r.Header.Set("Accept", test.accept)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var o struct{ Kind string }
		if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(w.Code, " ", o.Kind); got != test.want {
			t.Errorf("%d. %s, want %s", i, got, test.want)
		}
	}
}
