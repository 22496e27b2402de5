// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

// ok is an upstream that answers everything.
var ok = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RequestURI) })

func TestFilter(t *testing.T) {
	const exec = "/api/v1/namespaces/default/pods/p/exec"
	kubectlDefault := gateway.FilterOptions{RejectPaths: "^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach"}
	for _, tc := range []struct {
		name    string
		filter  gateway.FilterOptions
		method  string
		path    string
		headers []string
		refused string // part of the message; "" means served
	}{
		{name: "defaults", path: "/api/v1/pods"},
		{name: "exec by default", method: "POST", path: exec},
		{name: "localhost without port", path: "/api", headers: []string{"Host", "localhost"}},
		{name: "IPv6 with port", path: "/api", headers: []string{"Host", "[::1]:8001"}},
		{name: "IPv6 without port", path: "/api", headers: []string{"Host", "[::1]"}},

		{name: "rebinding", path: "/api", headers: []string{"Host", "evil.example:8001"}, refused: "--accept-hosts"},
		{name: "rebinding, page", path: "/ui/", headers: []string{"Host", "evil.example"}, refused: "--accept-hosts"},
		{name: "name with an accepted prefix", path: "/api", headers: []string{"Host", "localhost.evil.example"}, refused: "--accept-hosts"},
		{name: "address with other digits", path: "/api", headers: []string{"Host", "127x0x0x1"}, refused: "--accept-hosts"},
		{name: "host in capitals", path: "/api", headers: []string{"Host", "LOCALHOST:8001"}},
		{name: "host given", filter: gateway.FilterOptions{AcceptHosts: `^watch\.example$,^10\.`}, path: "/api", headers: []string{"Host", "watch.example:80"}},
		{name: "second host given", filter: gateway.FilterOptions{AcceptHosts: `^watch\.example$,^10\.`}, path: "/api", headers: []string{"Host", "10.1.2.3"}},
		{name: "host given replaces the default", filter: gateway.FilterOptions{AcceptHosts: `^watch\.example$`}, path: "/api", headers: []string{"Host", "localhost"}, refused: "--accept-hosts"},

		{name: "accepted path", filter: gateway.FilterOptions{AcceptPaths: "^/api/v1/namespaces/a/"}, path: "/api/v1/namespaces/a/pods"},
		{name: "other path", filter: gateway.FilterOptions{AcceptPaths: "^/api/v1/namespaces/a/"}, path: "/api/v1/namespaces/b/pods", refused: "--accept-paths"},
		{name: "accepted path with a slash", filter: gateway.FilterOptions{AcceptPaths: "^/api/"}, path: "/api/"},
		{name: "traversal out of an accepted path", filter: gateway.FilterOptions{AcceptPaths: "^/api/v1/namespaces/a/"}, path: "/api/v1/namespaces/a/../../secrets", refused: "--accept-paths"},
		{name: "escaped traversal", filter: gateway.FilterOptions{AcceptPaths: "^/api/v1/namespaces/a/"}, path: "/api/v1/namespaces/a/%2e%2e/%2E./secrets", refused: "--accept-paths"},
		{name: "rejected path", filter: kubectlDefault, method: "POST", path: exec, refused: "--reject-paths"},
		{name: "second rejected path", filter: kubectlDefault, path: strings.Replace(exec, "exec", "attach", 1), refused: "--reject-paths"},
		{name: "rejected path, escaped", filter: kubectlDefault, path: strings.Replace(exec, "exec", "%65xec", 1), refused: "--reject-paths"},
		{name: "rejected path, doubled slashes", filter: kubectlDefault, path: "/" + exec, refused: "--reject-paths"},
		{name: "rejected path, with dots", filter: kubectlDefault, path: "/x/.." + exec, refused: "--reject-paths"},
		{name: "not rejected", filter: kubectlDefault, path: "/api/v1/namespaces/default/pods/p/log"},
		{name: "rejected method", filter: gateway.FilterOptions{RejectMethods: "POST,PUT,PATCH"}, method: "PUT", path: "/api", refused: "--reject-methods"},
		{name: "not rejected method", filter: gateway.FilterOptions{RejectMethods: "POST,PUT,PATCH"}, method: "DELETE", path: "/api"},
		{name: "rejection beats acceptance", filter: gateway.FilterOptions{AcceptPaths: "^/api", RejectPaths: "secrets"}, path: "/api/v1/secrets", refused: "--reject-paths"},

		{name: "the path of a watch", filter: gateway.FilterOptions{RejectPaths: "^/api/v1/secrets,^/apis/apps/v1/namespaces/x/"}, path: "/api/v1/watch/secrets", refused: "--reject-paths"},
		{name: "the path of a watch in a namespace", filter: gateway.FilterOptions{RejectPaths: "^/api/v1/secrets,^/apis/apps/v1/namespaces/x/"}, path: "/apis/apps/v1/watch/namespaces/x/deployments/web", refused: "--reject-paths"},
		{name: "disabled", filter: gateway.FilterOptions{Disabled: true, RejectPaths: ".*", RejectMethods: ".*"}, path: "/api", headers: []string{"Host", "any.example"}},
		{name: "disabled, cross-origin write", filter: gateway.FilterOptions{Disabled: true}, method: "POST", path: "/api", headers: []string{"Sec-Fetch-Site", "cross-site"}, refused: "cross-origin"},

		{name: "write from our page", method: "POST", path: "/api", headers: []string{"Host", "localhost:8001", "Origin", "http://localhost:8001", "Sec-Fetch-Site", "same-origin"}},
		{name: "write from our page, older browser", method: "POST", path: "/api", headers: []string{"Host", "localhost:8001", "Origin", "http://localhost:8001"}},
		{name: "write from another page", method: "POST", path: "/api", headers: []string{"Origin", "https://evil.example"}, refused: "cross-origin"},
		{name: "write from another port", method: "DELETE", path: "/api", headers: []string{"Host", "localhost:8001", "Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, refused: "cross-origin"},
		{name: "write from a sandbox", method: "PATCH", path: "/api", headers: []string{"Origin", "null"}, refused: "cross-origin"},
		{name: "read from another page", path: "/api", headers: []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, refused: "another origin"},
		{name: "read from another page, older browser", path: "/api", headers: []string{"Origin", "https://evil.example"}, refused: "another origin"},
		{name: "read from a sandbox", path: "/api/v1/secrets", headers: []string{"Origin", "null"}, refused: "another origin"},
		{name: "an image", path: "/api/v1/secrets?resourceVersion=0", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, refused: "another origin"},
		{name: "an image on a page of another port", path: "/api/v1/secrets", headers: []string{"Sec-Fetch-Site", "same-site"}, refused: "another origin"},
		{name: "an image, HEAD", method: "HEAD", path: "/api/v1/secrets", headers: []string{"Sec-Fetch-Site", "cross-site"}, refused: "-"},
		{name: "a preflight", method: "OPTIONS", path: "/api/v1/secrets", headers: []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, refused: "another origin"},
		{name: "an image of a proxied page", path: "/api/v1/namespaces/x/pods/p/proxy/", headers: []string{"Sec-Fetch-Site", "cross-site"}, refused: "another origin"},
		{name: "a link on another page", path: "/api/v1/secrets", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Accept", "text/html"}, refused: "another origin"},
		{name: "a link to the past on another page", path: "/at/10m/api/v1/secrets", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, refused: "another origin"},
		{name: "multiwatch from another page", path: "/watchkeeper/v1/multiwatch?watch=/api/v1/secrets%3Fwatch=1", headers: []string{"Sec-Fetch-Site", "cross-site"}, refused: "another origin"},
		{name: "history from another page", path: "/watchkeeper/v1/history/export", headers: []string{"Sec-Fetch-Site", "same-site"}, refused: "another origin"},
		{name: "filter disabled, an image", filter: gateway.FilterOptions{Disabled: true}, path: "/api/v1/secrets", headers: []string{"Sec-Fetch-Site", "cross-site"}, refused: "another origin"},
		{name: "an image of the root", path: "/", headers: []string{"Sec-Fetch-Site", "cross-site", "Accept", "image/*"}, refused: "another origin"},
		{name: "a value of the future", path: "/api", headers: []string{"Sec-Fetch-Site", "other"}, refused: "another origin"},
		{name: "a link to the page", path: "/ui/", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}},
		{name: "read from our page", path: "/api/v1/secrets", headers: []string{"Sec-Fetch-Site", "same-origin"}},
		{name: "typed into the address bar", path: "/api/v1/secrets", headers: []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}},

		{name: "exec from our page", path: exec, headers: []string{"Host", "localhost:8001", "Origin", "http://localhost:8001", "Sec-Fetch-Site", "same-origin"}},
		{name: "exec from another page", path: exec, headers: []string{"Origin", "https://evil.example"}, refused: "exec"},
		{name: "exec as an image", path: exec, headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, refused: "exec"},
		{name: "attach from another page", path: strings.Replace(exec, "exec", "attach/", 1), headers: []string{"Origin", "https://evil.example"}, refused: "exec"},
		{name: "port-forward from another page", path: strings.Replace(exec, "exec", "portforward", 1), headers: []string{"Origin", "null"}, refused: "exec"},
		{name: "WebSocket from another page", path: "/api/v1/pods?watch=1", headers: []string{"Connection", "keep-alive, Upgrade", "Upgrade", "websocket", "Origin", "https://evil.example"}, refused: "cross-origin"},
		{name: "WebSocket from our page", path: "/api/v1/pods?watch=1", headers: []string{"Host", "localhost:8001", "Connection", "Upgrade", "Upgrade", "websocket", "Origin", "http://localhost:8001"}},
		{name: "WebSocket from a program", path: "/api/v1/pods?watch=1", headers: []string{"Connection", "Upgrade", "Upgrade", "websocket"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, ok, rigOptions{gateway: gateway.Options{Filter: tc.filter}})
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			res := r.do(tc.method, tc.path, nil, tc.headers...)
			if tc.refused == "" {
				if body := readAll(t, res); res.StatusCode != http.StatusOK {
					t.Fatalf("refused: %s", body)
				}
				return
			}
			if res.StatusCode != http.StatusForbidden {
				t.Fatalf("served: %s", res.Status)
			}
			if tc.method == http.MethodHead {
				return
			}
			if s := statusOf(t, res); s.Reason != "Forbidden" || !strings.Contains(s.Message, tc.refused) {
				t.Errorf("message %q does not mention %q", s.Message, tc.refused)
			}
		})
	}
}

func TestInvalidFilters(t *testing.T) {
	up, err := upstream.New(&rest.Config{Host: "http://127.0.0.1:1"}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for flag, filter := range map[string]gateway.FilterOptions{
		"--accept-hosts":   {AcceptHosts: "("},
		"--accept-paths":   {AcceptPaths: "^/api,*"},
		"--reject-paths":   {RejectPaths: "["},
		"--reject-methods": {RejectMethods: "GET)"},
	} {
		if _, err := gateway.New(gateway.Options{Upstream: up, Filter: filter}); err == nil || !strings.HasPrefix(err.Error(), flag+": ") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// The gateway is no way to other hosts.
func TestConnectIsRefused(t *testing.T) {
	r := newRig(t, ok, rigOptions{})
	conn := r.dial()
	io.WriteString(conn, "CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\nConnection: close\r\n\r\n")
	if got, _ := io.ReadAll(conn); !strings.HasPrefix(string(got), "HTTP/1.1 405 ") {
		t.Errorf("got %q", got)
	}
}
