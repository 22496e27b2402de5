// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

var (
	pods        = kube.Resource{Version: "v1", Name: "pods"}
	namespaces  = kube.Resource{Version: "v1", Name: "namespaces"}
	deployments = kube.Resource{Group: "apps", Version: "v1", Name: "deployments"}
)

func TestParsePath(t *testing.T) {
	for path, want := range map[string]*target{
		"/api/v1/pods":                                {verb: verbList, resource: pods},
		"/api/v1/pods/":                               {verb: verbList, resource: pods},
		"/api/v1/namespaces/d/pods":                   {verb: verbList, resource: pods, namespace: "d"},
		"/api/v1/namespaces/d/pods/x":                 {verb: verbGet, resource: pods, namespace: "d", name: "x"},
		"/api/v1/namespaces":                          {verb: verbList, resource: namespaces},
		"/api/v1/namespaces/d":                        {verb: verbGet, resource: namespaces, name: "d"},
		"/apis/apps/v1/deployments":                   {verb: verbList, resource: deployments},
		"/apis/apps/v1/namespaces/d/deployments/x":    {verb: verbGet, resource: deployments, namespace: "d", name: "x"},
		"/api/v1/watch/pods":                          {verb: verbWatch, resource: pods, watchPath: true},
		"/api/v1/watch/namespaces/d/pods/x":           {verb: verbWatch, resource: pods, namespace: "d", name: "x", watchPath: true},
		"/api/v1/namespaces/d/status":                 nil,
		"/api/v1/namespaces/d/finalize":               nil,
		"/api/v1/namespaces/d/pods/x/log":             nil,
		"/api/v1/pods/x/y/z":                          nil,
		"/api/v1/nodes/n/proxy/metrics":               nil,
		"/api":                                        nil,
		"/api/v1":                                     nil,
		"/apis/apps/v1":                               nil,
		"/":                                           nil,
		"/healthz":                                    nil,
		"/api/v1/namespaces/../pods":                  nil,
		"/api/v1//pods":                               nil,
		"/openapi/v3/apis/apps/v1":                    nil,
		"/apis/apps/v1/namespaces/d/deployments/x/ss": nil,
	} {
		got, ok := parsePath(path)
		if ok != (want != nil) {
			t.Errorf("%s: %+v, %v", path, got, ok)
		} else if ok {
			if diff := cmp.Diff(*want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("%s (-want +got)\n%s", path, diff)
			}
		}
	}
}

// TestPassesThrough lists what the cache leaves to the API server whatever it
// holds.
func TestPassesThrough(t *testing.T) {
	get := func(url string, header ...string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, url, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodPost, "/api/v1/pods", nil),
		httptest.NewRequest(http.MethodHead, "/api/v1/pods", nil),
		get("/api/v1/pods", "Authorization", "Bearer x"),
		get("/api/v1/pods", "Impersonate-User", "jane"),
		get("/api/v1/pods", "Impersonate-Extra-Scopes", "x"),
		get("/api/v1/pods", "Connection", "Upgrade", "Upgrade", "websocket"),
		get("/api/v1/pods?watch=1", "Connection", "Upgrade", "Upgrade", "spdy/3.1"),
		get("/api/v1/pods?watch=1", "Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io.eA, binary.k8s.io"),
		get("/api/v1/pods?limit=abc"),
		get("/api/v1/pods?labelSelector=%3D%3D"),
		get("/api/v1/pods?fieldSelector=a"),
		get("/api/v1/pods?resourceVersion=abc"),
		get("/api/v1/pods?resourceVersion=-1"),
		get("/api/v1/pods?resourceVersionMatch=Exact"),
		get("/api/v1/pods?sendInitialEvents=true"),
		get("/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan"),
		get("/api/v1/watch/pods?sendInitialEvents=true"),
		get("/api/v1/pods?timeout=5s"),
		get("/api/v1/pods?shardSelector=x"),
		get("/api/v1/namespaces/d/pods/x?export=1"),
		get("/api/v1/pods?a;b"),
		get("/api/v1/pods?a=%zz"),
		get("/api/v1/namespaces/a%2Fb/pods"),
		get("/api/v1%3Fx/pods"), // discovery would find pods at /api/v1?x
		get("/api/v1%23/pods"),
		get("/api/v1%FF/pods"),
		get("/api/v1/namespaces/d/pods/x"), // consistent: no reason to watch all pods
	} {
		if rd, ok := parseRead(r); ok {
			t.Errorf("%s %s %v: %+v", r.Method, r.URL, r.Header, rd)
		}
	}
}

func TestParseRead(t *testing.T) {
	parse := func(url string) *read {
		t.Helper()
		rd, ok := parseRead(httptest.NewRequest(http.MethodGet, url, nil))
		if !ok {
			t.Fatalf("%s is not a read", url)
		}
		return rd
	}
	if rd := parse("/api/v1/pods?watch"); rd.verb != verbWatch || rd.opts.SendInitialEvents == nil || !*rd.opts.SendInitialEvents {
		t.Errorf("a watch without an RV has initial events: %+v", rd)
	}
	if rd := parse("/api/v1/pods?watch=1&resourceVersion=5"); rd.rv != 5 || rd.opts.SendInitialEvents != nil {
		t.Errorf("a watch from an RV has none: %+v", rd)
	}
	if rd := parse("/api/v1/watch/pods?resourceVersion=0"); rd.verb != verbWatch || rd.opts.SendInitialEvents != nil {
		t.Errorf("a /watch/ path is defaulted as a list: %+v", rd)
	}
	for _, url := range []string{"/api/v1/pods?watch=0", "/api/v1/pods?watch=False", "/api/v1/pods"} {
		if rd := parse(url); rd.verb != verbList {
			t.Errorf("%s is a %s", url, rd.verb)
		}
	}
	if rd := parse("/api/v1/namespaces/d/pods/x?watch=1&resourceVersion=0"); rd.verb != verbGet {
		t.Errorf("watch on a single object is ignored: %s", rd.verb)
	}
}
