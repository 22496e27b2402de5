// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

// TestReadOnly: behind a read-only gateway nothing reaches the API server that could
// change the cluster, whatever the other rules are.
func TestReadOnly(t *testing.T) {
	const pod = "/api/v1/namespaces/n/pods/p"
	spdy := []string{"Connection", "Upgrade", "Upgrade", "SPDY/3.1"}
	websocket := []string{"Connection", "keep-alive, upgrade", "Upgrade", "WebSocket"}
	type try struct {
		name, method, path string
		headers            []string
	}
	// served reaches the API server as it is, or is answered here.
	served := []try{
		{"a list", "GET", "/api/v1/pods", nil},
		{"an object", "GET", pod, nil},
		{"a watch", "GET", "/api/v1/pods?watch=1", nil},
		{"a watch over a WebSocket", "GET", "/api/v1/pods?watch=1", websocket},
		{"logs", "GET", pod + "/log?follow=true", nil},
		{"a subresource", "GET", "/apis/apps/v1/namespaces/n/deployments/d/scale", nil},
		{"HEAD", "HEAD", "/api/v1/pods", nil},
		{"OPTIONS", "OPTIONS", "/api/v1/pods", nil},
		{"discovery", "GET", "/apis", nil},
		{"discovery with a slash", "GET", "/apis/", nil},
		{"the root", "GET", "/", nil},
		{"OpenAPI", "GET", "/openapi/v3/apis/apps/v1?hash=A%2FB", nil},
		{"metrics", "GET", "/metrics", nil},
		{"the page", "GET", "/ui/", nil},
		{"an offer of HTTP/2", "GET", "/api/v1/pods", []string{"Connection", "Upgrade", "Upgrade", "h2c"}},
		{"an object named exec", "GET", "/api/v1/namespaces/pods/configmaps/exec", nil},
		{"a namespace named proxy", "GET", "/api/v1/namespaces/proxy/pods", nil},
		{"an object named proxy", "GET", "/api/v1/nodes/proxy", nil},
		{"an override of a GET", "GET", "/api/v1/pods?_method=DELETE", []string{"X-HTTP-Method-Override", "DELETE"}},
		{"a review", "POST", accessPath, nil},
		{"a review of rules", "POST", rulesPath, nil},
		{"a review of the user", "POST", userPath, nil},
		{"a review of the past", "POST", "/at/10m" + accessPath, nil},
		{"discovery in the past", "GET", "/at/10m/apis", nil},
	}
	refused := []try{
		{"POST", "POST", "/api/v1/namespaces/n/pods", nil},
		{"PUT", "PUT", pod, nil},
		{"PATCH", "PATCH", pod, nil},
		{"DELETE", "DELETE", pod, nil},
		{"a collection", "DELETE", "/api/v1/namespaces/n/pods", nil},
		{"a trailing slash", "DELETE", pod + "/", nil},
		{"double slashes", "POST", "/" + pod, nil},
		{"TRACE", "TRACE", pod, nil},
		{"an unknown method", "PURGE", pod, nil},
		{"another case", "get", pod, nil},
		{"another case of a write", "dELETE", pod, nil},
		{"an override of a POST", "POST", pod + "?_method=GET", []string{"X-HTTP-Method-Override", "GET", "X-HTTP-Method", "GET", "X-Method-Override", "GET"}},
		{"an eviction", "POST", pod + "/eviction", nil},
		{"a dry run", "POST", "/api/v1/namespaces/n/pods?dryRun=All", nil},
		{"exec", "POST", pod + "/exec?command=ls", spdy},
		{"exec over a WebSocket", "GET", pod + "/exec?command=ls", websocket},
		{"exec as a watch", "GET", pod + "/exec?watch=1", websocket},
		{"exec without an upgrade", "GET", pod + "/exec", nil},
		{"exec with a slash", "GET", pod + "/exec/", nil},
		{"exec, escaped", "GET", pod + "/%65xec", nil},
		{"exec, escaped slash", "GET", pod + "%2Fexec", nil},
		{"exec, double slashes", "GET", "/api/v1//namespaces/n/pods/p//exec", nil},
		{"exec, dots", "GET", "/api/v1/namespaces/n/pods/x/../p/exec", nil},
		{"exec, dots and slashes", "GET", "/api/v1/namespaces/n/x//../pods/p/exec", nil},
		{"exec on a watch path", "GET", "/api/v1/watch/namespaces/n/pods/p/exec", nil},
		{"exec, if slashes are kept and dots removed", "GET", pod + "/exec//..", nil},
		{"a list, double slashes", "GET", "//api/v1/pods", nil},
		{"a list, dots", "GET", "/api/v1/x/../pods", nil},
		{"a list, escaped dots", "GET", "/api/v1/%2e/pods", nil},
		{"a list of the past, double slashes", "GET", "/at/10m//api/v1/pods", nil},
		{"attach", "GET", pod + "/attach", websocket},
		{"port-forward", "GET", pod + "/portforward", websocket},
		{"HEAD of an exec", "HEAD", pod + "/exec", nil},
		{"a Pod's proxy", "GET", pod + "/proxy", nil},
		{"a path below a Service's proxy", "GET", "/api/v1/namespaces/n/services/http:s:80/proxy/a/b", nil},
		{"a Node's proxy", "GET", "/api/v1/nodes/n/proxy/run/n/p/c?cmd=ls", nil},
		{"an old proxy path", "GET", "/api/v1/proxy/nodes/n/run", nil},
		{"logs with an upgrade", "GET", pod + "/log?follow=true", websocket},
		{"a list with an upgrade", "GET", "/api/v1/pods", websocket},
		{"a watch with another upgrade", "GET", "/api/v1/pods?watch=1", spdy},
		{"a console of an extension", "GET", "/apis/subresources.kubevirt.io/v1/namespaces/n/virtualmachineinstances/v/console", websocket},
		{"a port of an extension", "GET", "/apis/subresources.kubevirt.io/v1/namespaces/n/virtualmachineinstances/v/portforward/22", nil},
		{"an upgrade elsewhere", "GET", "/", spdy},
		{"a review of another user", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", nil},
		{"a review of a token", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", nil},
		{"a token", "POST", "/api/v1/namespaces/n/serviceaccounts/s/token", nil},
		{"a review with a slash", "POST", accessPath + "/", nil},
		{"a review, double slashes", "POST", "/" + accessPath, nil},
		{"a review, dots", "POST", "/api/.." + accessPath, nil},
		{"a review, another method", "PUT", accessPath, nil},
		{"a review with an upgrade", "POST", accessPath, spdy},
		{"the past", "POST", "/at/10m/api/v1/namespaces/n/pods", nil},
		{"the past, double slashes", "DELETE", "/at/10m/" + pod, nil},
		{"exec in the past", "GET", "/at/10m" + pod + "/exec", nil},
		{"before the past", "DELETE", "//at/10m" + pod, nil},
		{"a workbook, another method", "PUT", "/watchkeeper/v1/workbook", nil},
		{"below a workbook", "POST", "/watchkeeper/v1/workbook/x", nil},
		{"a workbook, dots", "POST", "/watchkeeper/v1/x/../workbook", nil},
		{"YAML, another method", "PUT", "/watchkeeper/v1/yaml", nil},
		{"below YAML", "POST", "/watchkeeper/v1/yaml/x", nil},
		{"multiwatch", "POST", "/watchkeeper/v1/multiwatch", nil},
		{"history", "DELETE", "/watchkeeper/v1/history", nil},
		{"the page", "POST", "/ui/", nil},
		{"files", "PUT", "/static/x", nil},
	}
	for _, test := range []struct {
		name    string
		prefix  string
		options gateway.Options
	}{
		{"filter", "", gateway.Options{}},
		{"no filter", "", gateway.Options{Filter: gateway.FilterOptions{Disabled: true}}},
		{"prefix", "/k", gateway.Options{APIPrefix: "/k"}},
		{"prefix, no filter", "/k", gateway.Options{APIPrefix: "/k/", Filter: gateway.FilterOptions{Disabled: true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.options.Filter.ReadOnly = true
			test.options.WWW = t.TempDir()
			var arrived atomic.Pointer[string] // the method of the last request, other than the gateway's own
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Try") != "" {
					arrived.Store(&r.Method)
				}
				ok(w, r)
			}), rigOptions{gateway: test.options})
			do := func(try try) *http.Response {
				arrived.Store(nil)
				prefix := test.prefix
				for _, own := range []string{"/ui/", "/static/", "/watchkeeper/"} {
					if strings.HasPrefix(try.path, own) {
						prefix = ""
					}
				}
				return r.do(try.method, prefix+try.path, nil, append([]string{"X-Try", "1"}, try.headers...)...)
			}
			for _, try := range served {
				res := do(try)
				if res.StatusCode != http.StatusOK {
					t.Errorf("%s: %s %s", try.name, res.Status, readAll(t, res))
				}
				if m := arrived.Load(); m != nil && *m != try.method {
					t.Errorf("%s arrived as %s", try.name, *m)
				}
			}
			for _, try := range refused {
				res := do(try)
				if m := arrived.Load(); m != nil {
					t.Errorf("%s arrived as %s", try.name, *m)
				}
				if try.method == http.MethodHead && res.StatusCode == http.StatusForbidden {
					continue // it has no body
				}
				if s := statusOf(t, res); s.Code != http.StatusForbidden || s.Reason != "Forbidden" || !strings.HasPrefix(s.Message, "the gateway is read-only (--read-only): "+try.method+" /") || !strings.Contains(s.Message, " is refused") {
					t.Errorf("%s: %d %s", try.name, s.Code, s.Message)
				}
			}
		})
	}
}

// TestReadOnlyConversions: converting a workbook or YAML changes nothing, so that a read-only
// gateway does it, but not for a page of another origin.
func TestReadOnlyConversions(t *testing.T) {
	for _, prefix := range []string{"/", "/k/"} {
		r := newRig(t, ok, rigOptions{gateway: gateway.Options{APIPrefix: prefix, Filter: gateway.FilterOptions{ReadOnly: true}}})
		const body = `{"tabs":[{"name":"a"}]}`
		for path, sent := range map[string]string{
			"/watchkeeper/v1/workbook": "application/json", prefix + "watchkeeper/v1/workbook": "application/json",
			"/watchkeeper/v1/yaml": "application/yaml", prefix + "watchkeeper/v1/yaml": "application/yaml",
		} {
			if res := r.do(http.MethodPost, path, strings.NewReader(body), "Content-Type", sent); res.StatusCode != http.StatusOK {
				t.Errorf("%s: %s %s", path, res.Status, readAll(t, res))
			}
			s := statusOf(t, r.do(http.MethodPost, path, strings.NewReader(body), "Content-Type", sent, "Origin", "http://other.example"))
			if s.Code != http.StatusForbidden || !strings.Contains(s.Message, "cross-origin") {
				t.Errorf("%s from another origin: %d %s", path, s.Code, s.Message)
			}
		}
	}
}

// TestReadOnlyWithPrefix: a prefix that begins with /api is no way around.
func TestReadOnlyWithPrefix(t *testing.T) {
	r := newRig(t, ok, rigOptions{gateway: gateway.Options{APIPrefix: "/api/", Filter: gateway.FilterOptions{ReadOnly: true}}})
	for _, path := range []string{"/api/v1/namespaces/n/pods", "/at/10m/api/v1/namespaces/n/pods", "/apis/apps/v1/namespaces/n/deployments", accessPath + "x"} {
		if s := statusOf(t, r.do(http.MethodPost, path, nil)); s.Code != http.StatusForbidden && s.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, s.Code, s.Message)
		}
	}
	if res := r.get("/api/v1/namespaces/n/pods"); res.StatusCode != http.StatusOK {
		t.Error(res.Status)
	}
}
