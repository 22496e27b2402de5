// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// TestAccessAPI: the API server decides where the caller may read, and where the gateway
// may if the caller has no credentials. The namespaces are those of the cache: one list
// serves all requests, and a new namespace is known.
func TestAccessAPI(t *testing.T) {
	api := fakeapi.New(fakeapi.Options{
		Resources: []fakeapi.Resource{fakeapi.Pods, fakeapi.Nodes, informertest.Namespaces},
		Allow: func(r *fakeapi.Request, a authorizationv1.ResourceAttributes) bool {
			token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			return !ok || token == a.Namespace
		},
	})
	for _, name := range []string{"b", "a", "rejected"} {
		api.Put("namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	}
	var lists atomic.Int64
	api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
		if r.URL.Path == "/api/v1/namespaces" && r.Query.Get("watch") == "" {
			lists.Add(1)
		}
		next(w)
	})
	r := newRig(t, api, rigOptions{gateway: gateway.Options{Filter: gateway.FilterOptions{RejectPaths: "^/api/v1/namespaces/rejected/"}}})
	const path = "/watchkeeper/v1/access?resource=pods"
	ask := func(token, want string) {
		t.Helper()
		var headers []string
		if token != "" {
			headers = []string{"Authorization", "Bearer " + token}
		}
		res := r.get(path, headers...)
		if body := readAll(t, res); res.StatusCode != http.StatusOK || !strings.Contains(body, want) || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%q: %s %s, want %s", token, res.Status, body, want)
		}
	}
	ask("", `"all":true,"namespaces":[]`)
	ask("a", `"all":false,"namespaces":["a"]`)
	ask("b", `"all":false,"namespaces":["b"]`)
	ask("c", `"all":false,"namespaces":[]`)
	ask("rejected", `"all":false,"namespaces":[]`)
	if n := lists.Load(); n > 1 {
		t.Errorf("%d lists of namespaces", n)
	}
	api.Put("namespaces", `{"metadata":{"name":"d"}}`)
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(readAll(t, r.get(path, "Authorization", "Bearer d")), `"namespaces":["d"]`) {
		if time.Now().After(deadline) {
			t.Fatal("the new namespace is not known")
		}
		time.Sleep(time.Millisecond)
	}
	if s := statusOf(t, r.get(path+"&namespace=a")); s.Code != http.StatusBadRequest {
		t.Errorf("an unknown parameter: %+v", s)
	}
}

// TestAccessAPIWithoutNamespaces: a gateway that may not list namespaces says so, before
// and after it has listed them.
func TestAccessAPIWithoutNamespaces(t *testing.T) {
	for _, listed := range []bool{false, true} {
		api := fakeapi.New(fakeapi.Options{
			Resources: []fakeapi.Resource{fakeapi.Pods, informertest.Namespaces},
			Allow:     func(_ *fakeapi.Request, a authorizationv1.ResourceAttributes) bool { return false },
		})
		if !listed {
			api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
				if r.URL.Path == "/api/v1/namespaces" {
					fakeapi.WriteStatus(w, http.StatusForbidden, "Forbidden", `namespaces is forbidden: User "jane" cannot list`)
					return
				}
				next(w)
			})
		}
		r := newRig(t, api, rigOptions{})
		for range 2 {
			s := statusOf(t, r.get("/watchkeeper/v1/access?resource=pods"))
			if s.Code != http.StatusServiceUnavailable || !strings.Contains(s.Message, "the gateway may not list and watch namespaces") || strings.Contains(s.Message, "jane") == listed {
				t.Errorf("listed %t: %+v", listed, s)
			}
		}
	}
}
