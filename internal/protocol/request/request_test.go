// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

var (
	pods        = kube.Resource{Version: "v1", Name: "pods"}
	namespaces  = kube.Resource{Version: "v1", Name: "namespaces"}
	deployments = kube.Resource{Group: "apps", Version: "v1", Name: "deployments"}
)

func TestParsePath(t *testing.T) {
	for path, want := range map[string]*Target{
		"/api/v1/pods":                                {Verb: List, Resource: pods},
		"/api/v1/pods/":                               {Verb: List, Resource: pods},
		"/api/v1/namespaces/d/pods":                   {Verb: List, Resource: pods, Namespace: "d"},
		"/api/v1/namespaces/d/pods/x":                 {Verb: Get, Resource: pods, Namespace: "d", Name: "x"},
		"/api/v1/namespaces":                          {Verb: List, Resource: namespaces},
		"/api/v1/namespaces/d":                        {Verb: Get, Resource: namespaces, Name: "d"},
		"/apis/apps/v1/deployments":                   {Verb: List, Resource: deployments},
		"/apis/apps/v1/namespaces/d/deployments/x":    {Verb: Get, Resource: deployments, Namespace: "d", Name: "x"},
		"/api/v1/watch/pods":                          {Verb: Watch, Resource: pods, WatchPath: true},
		"/api/v1/watch/namespaces/d/pods/x":           {Verb: Watch, Resource: pods, Namespace: "d", Name: "x", WatchPath: true},
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
		got, ok := ParsePath(path)
		if ok != (want != nil) {
			t.Errorf("%s: %+v, %v", path, got, ok)
		} else if ok {
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", path, diff)
			}
		}
	}
}

// TestPassThrough lists requests that are passed through.
func TestPassThrough(t *testing.T) {
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
	} {
		if rd, err := Parse(r); !errors.Is(err, ErrPassThrough) {
			t.Errorf("%s %s %v: %+v", r.Method, r.URL, r.Header, rd)
		}
	}
}

func TestParse(t *testing.T) {
	parse := func(url string) *Read {
		t.Helper()
		rd, err := Parse(httptest.NewRequest(http.MethodGet, url, nil))
		if err != nil {
			t.Fatalf("%s is not a read", url)
		}
		return rd
	}
	if rd := parse("/api/v1/pods?watch"); rd.Verb != Watch || rd.Options.SendInitialEvents == nil || !*rd.Options.SendInitialEvents {
		t.Errorf("a watch without an RV has initial events: %+v", rd)
	}
	if rd := parse("/api/v1/pods?watch=1&resourceVersion=5"); rd.RV != 5 || rd.Options.SendInitialEvents != nil {
		t.Errorf("a watch from an RV has none: %+v", rd)
	}
	if rd := parse("/api/v1/watch/pods?resourceVersion=0"); rd.Verb != Watch || rd.Options.SendInitialEvents != nil {
		t.Errorf("a /watch/ path is defaulted as a list: %+v", rd)
	}
	for _, url := range []string{"/api/v1/pods?watch=0", "/api/v1/pods?watch=False", "/api/v1/pods"} {
		if rd := parse(url); rd.Verb != List {
			t.Errorf("%s is a %s", url, rd.Verb)
		}
	}
	if rd := parse("/api/v1/namespaces/d/pods/x?watch=1&resourceVersion=0"); rd.Verb != Get {
		t.Errorf("watch on a single object is ignored: %s", rd.Verb)
	}
}

// TestIsWatch: watches are recognised on the paths of the past, too.
func TestIsWatch(t *testing.T) {
	for path, want := range map[string]bool{
		"/at/10m/api/v1/pods?watch=1":       true,
		"/at/10m/api/v1/watch/pods":         true,
		"/at/10m/api/v1/pods":               false,
		"/at/10m/api/v1/pods/a/log?watch=1": false,
		"/at/10m":                           false,
		"/at":                               false,
	} {
		if got := IsWatch(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// TestCutAt: the moment is cut off the path, whatever escapes it has.
func TestCutAt(t *testing.T) {
	for path, want := range map[string]string{
		"/at/rv:12/api/v1/pods":                                    "rv:12 /api/v1/pods",
		"/at/rv%3A12/api/v1/pods?x=1":                              "rv:12 /api/v1/pods",
		"/%61t/rv:12/api/v1/pods":                                  "rv:12 /api/v1/pods",
		"/at/2026-01-31T15:04:05.25Z/api/v1/pods":                  "2026-01-31T15:04:05.25Z /api/v1/pods",
		"/at/2026-01-31T17:04:05%2B02:00/api/v1/pods":              "2026-01-31T15:04:05Z /api/v1/pods",
		"/at/2026-01-31T17:04:05+02:00/api/v1/namespaces/a/pods/b": "2026-01-31T15:04:05Z /api/v1/namespaces/a/pods/b",
		"/at/rv:12":  "rv:12 /",
		"/at/rv:12/": "rv:12 /",
		"/at/rv:12/openapi/v3/apis/apps/v1?hash=A%2FB": "rv:12 /openapi/v3/apis/apps/v1",
	} {
		moment, inner, err := CutAt(httptest.NewRequest("GET", path, nil), time.Now())
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if got := moment.String() + " " + inner.URL.Path; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestAgeKeepsMonotonicClock: setting the clock does not change which moment an age is.
func TestAgeKeepsMonotonicClock(t *testing.T) {
	now := time.Now()
	for text, age := range map[string]time.Duration{"now": 0, "5m": 5 * time.Minute} {
		// Equality of the structures includes the reading of the monotonic clock.
		if when, err := ParseMoment(text, now); err != nil || when.At != now.Add(-age) {
			t.Errorf("%s: %v, %v, want %v", text, when.At, err, now.Add(-age))
		}
	}
}

func TestSubresource(t *testing.T) {
	for path, want := range map[string]string{
		"/":                                              "",
		"/api":                                           "",
		"/api/v1":                                        "",
		"/apis/apps/v1":                                  "",
		"/version":                                       "",
		"/metrics/a/b/c/exec":                            "",
		"/api/v1/pods":                                   "",
		"/api/v1/nodes/exec":                             "",
		"/api/v1/nodes/n/proxy":                          "proxy",
		"/api/v1/nodes/n/proxy/":                         "proxy",
		"/api/v1/nodes/n/proxy/a/exec":                   "proxy",
		"/api/v1/proxy/nodes/n":                          "proxy",
		"/api/v1/namespaces/proxy":                       "",
		"/api/v1/namespaces/proxy/pods":                  "",
		"/api/v1/namespaces/n/status":                    "status",
		"/api/v1/namespaces/n/finalize":                  "finalize",
		"/api/v1/namespaces/n/pods/p":                    "",
		"/api/v1/namespaces/n/pods/exec":                 "",
		"/api/v1/namespaces/n/pods/p/exec":               "exec",
		"/api/v1/namespaces/pods/configmaps/exec":        "",
		"/api/v1/watch/namespaces/n/pods/p/exec":         "exec",
		"/apis/apps/v1/namespaces/n/deployments/d/scale": "scale",
		"/apis/a.example/v1/widgets/w/portforward/80":    "portforward",
		"/apis/a.example/v1/namespaces/n/widgets/w/portforward/": "portforward",
	} {
		if got := Subresource(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
