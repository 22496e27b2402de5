// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

const sandbox = "sandbox allow-scripts allow-forms allow-popups"

// TestSandbox: whatever the path of a request, its encoding and its answer, what the
// API server answers cannot act as the gateway's own page in a browser.
func TestSandbox(t *testing.T) {
	hostile := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html")
		h.Set("Clear-Site-Data", `"*"`)
		h.Set("Service-Worker-Allowed", "/")
		h.Set("Report-To", "{}")
		h.Set("X-Content-Type-Options", "sniff")
		h.Set("Set-Cookie", "a=b")
		if r.URL.Query().Has("redirect") {
			h.Set("Location", "/x")
			w.WriteHeader(http.StatusFound)
		}
		if r.URL.Query().Has("error") {
			w.WriteHeader(http.StatusBadGateway)
		}
		io.WriteString(w, "<script>harm()</script>")
	})
	up := httptest.NewServer(hostile)
	defer up.Close()
	server, err := upstream.New(&rest.Config{Host: up.URL}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, opts := range []gateway.Options{{}, {APIPrefix: "/k8s"}, {APIPrefix: "/api/"}, {Filter: gateway.FilterOptions{Disabled: true}}, {AllowProxiedPages: true}} {
		opts.Upstream = server
		g, err := gateway.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		prefix := ""
		if opts.APIPrefix == "/k8s" {
			prefix = opts.APIPrefix
		}
		for _, path := range []string{
			"/api/v1/namespaces/x/pods/p/proxy",
			"/api/v1/namespaces/x/pods/https:p:8443/proxy/a/b?error",
			"/api/v1/namespaces/x/services/s:web/proxy/?redirect",
			"/api/v1/nodes/n/proxy/logs/",
			"/api/v1/namespaces/x/pods/p/%70roxy/",
			"/api/v1/namespaces/x/pods/p/%2570roxy/",
			"/api/v1//namespaces/x//pods/p/proxy//",
			"/api/v1/namespaces/x/pods/p/log/../proxy/",
			"/api/v1/namespaces/x/pods/p%2fproxy%2f",
			"/api/v1/proxy/namespaces/x/pods/p/",
			"/api/v1/namespaces/x/pods/p/log",
			"/api/v1/pods?fieldSelector=odd",
			"/api/v1",
			"/at/10m/api/v1", // discovery is passed through
			"/api/metrics",
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
				if method != http.MethodGet && strings.HasPrefix(path, "/at/") {
					continue
				}
				w := httptest.NewRecorder()
				r := httptest.NewRequest(method, "http://localhost/", nil)
				r.RequestURI = prefix + path
				if r.URL, err = url.ParseRequestURI(r.RequestURI); err != nil {
					t.Fatal(err)
				}
				g.ServeHTTP(w, r)
				want := http.Header{"X-Content-Type-Options": {"nosniff"}, "Set-Cookie": {"a=b"}}
				if opts.AllowProxiedPages {
					want["Clear-Site-Data"], want["Service-Worker-Allowed"], want["Report-To"] = []string{`"*"`}, []string{"/"}, []string{"{}"}
				} else {
					want["Content-Security-Policy"] = []string{sandbox}
				}
				got := http.Header{}
				for _, name := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Clear-Site-Data", "Service-Worker-Allowed", "Report-To", "Set-Cookie"} {
					if v := w.Header().Values(name); v != nil {
						got[name] = v
					}
				}
				if diff := cmp.Diff(want, got); diff != "" || w.Header().Get("Content-Type") != "text/html" {
					t.Errorf("%s %s%s: %d (-want +got)\n%s", method, prefix, path, w.Code, diff)
				}
			}
		}
	}
}

// TestSandboxIsAdded: the policy of an answer still applies next to the sandbox.
func TestSandboxIsAdded(t *testing.T) {
	eachTransport(t, func(t *testing.T, opts rigOptions) {
		own := []string{"default-src 'self'", "sandbox allow-same-origin allow-scripts"}
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Security-Policy"] = own
		}), opts)
		res := r.get("/api/v1/namespaces/x/pods/p/proxy/")
		if diff := cmp.Diff(append(own, sandbox), res.Header["Content-Security-Policy"]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
