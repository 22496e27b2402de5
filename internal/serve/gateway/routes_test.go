// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

// site creates a directory of static files, and files outside of it that must not be
// served.
func site(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("secret", "outside")
	write("www/hello.txt", "inside")
	write("www/page/index.html", "<p>index")
	write("www/list/a b.txt", "spaced")
	for link, target := range map[string]string{
		"www/in":  "hello.txt",
		"www/out": "../secret",
		"www/abs": filepath.Join(base, "secret"),
		"www/dir": "..",
	} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(base, "www")
}

func TestStaticFiles(t *testing.T) {
	r := newRig(t, ok, rigOptions{gateway: gateway.Options{WWW: site(t)}})
	for _, tc := range []struct {
		path string
		code int
		want string // part of the body, or the target of a redirect
	}{
		{"/static/hello.txt", 200, "inside"},
		{"/static/page/", 200, "<p>index"},
		{"/static/list/", 200, `href="a%20b.txt"`},
		{"/static/list/a%20b.txt", 200, "spaced"},
		{"/static/in", 200, "inside"},
		{"/static", 301, "static/"},
		{"/static/page", 301, "page/"},
		{"/static/nothing", 404, ""},
		{"/static/out", 404, ""},
		{"/static/abs", 404, ""},
		{"/static/dir/secret", 404, ""},
		{"/static/../secret", 404, ""},
		{"/static/..%2fsecret", 404, ""},
		{"/static/%2e%2e/secret", 404, ""},
		{"/static/page/../../../secret", 404, ""},
		{"/static/page/..%5c..%5csecret", 404, ""},
		{"/static//etc/passwd", 404, ""},
		{"/statics", 200, "/statics"}, // upstream's
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL, nil)
		req.URL.Opaque = tc.path
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := readAll(t, res)
		res.Body.Close()
		if res.StatusCode != tc.code || strings.Contains(body, "outside") {
			t.Errorf("%s: %s %q", tc.path, res.Status, body)
		}
		if got := body + res.Header.Get("Location"); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.path, got, tc.want)
		}
	}
}

func TestRoutes(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
	for _, tc := range []struct {
		name   string
		opts   gateway.Options
		www    bool
		path   string
		accept string
		want   string // "code body" or "code location"
	}{
		{name: "root", path: "/", accept: "*/*", want: "200 /"},
		{name: "root, client-go", path: "/", accept: "application/json, */*", want: "200 /"},
		{name: "root, browser", path: "/", accept: browser, want: "302 ui/"},
		{name: "root, JSON preferred", path: "/", accept: "text/html;q=0.5, application/json", want: "200 /"},
		{name: "browser elsewhere", path: "/api", accept: browser, want: "200 /api"},
		{name: "page without slash", path: "/ui", want: "301 ui/"},

		{name: "prefix", opts: gateway.Options{APIPrefix: "/custom/"}, path: "/custom/api/v1/a%2Fb?x=1", want: "200 /api/v1/a%2Fb?x=1"},
		{name: "prefix without slashes", opts: gateway.Options{APIPrefix: "custom"}, path: "/custom/api", want: "200 /api"},
		{name: "prefix alone", opts: gateway.Options{APIPrefix: "/custom/"}, path: "/custom/", want: "200 /"},
		{name: "prefix alone without slash", opts: gateway.Options{APIPrefix: "/custom/"}, path: "/custom", want: "200 /"},
		{name: "escaped prefix", opts: gateway.Options{APIPrefix: "/custom/"}, path: "/c%75stom/api/v1", want: "200 /api/v1"},
		{name: "only one prefix is removed", opts: gateway.Options{APIPrefix: "/custom/"}, path: "/custom/custom/", want: "200 /custom/"},
		{name: "outside the prefix", opts: gateway.Options{APIPrefix: "/custom/"}, path: "/api", want: "404"},
		{name: "path that begins like the prefix", opts: gateway.Options{APIPrefix: "/custom/"}, path: "/customs/api", want: "404"},
		{name: "root outside the prefix, browser", opts: gateway.Options{APIPrefix: "/custom/"}, path: "/", accept: browser, want: "302 ui/"},
		{name: "prefix that is the API's own", opts: gateway.Options{APIPrefix: "/api/"}, path: "/api/v1", want: "200 /api/v1"},
		{name: "outside the API's own", opts: gateway.Options{APIPrefix: "/api/"}, path: "/version", want: "404"},
		{name: "filter below the prefix", opts: gateway.Options{APIPrefix: "/custom/", Filter: gateway.FilterOptions{RejectPaths: "^/api/v1/secrets"}}, path: "/custom/api/v1/secrets", want: "403"},

		{name: "files elsewhere", www: true, opts: gateway.Options{WWWPrefix: "x"}, path: "/x/hello.txt", want: "200 inside"},
		{name: "files are not filtered as API paths", www: true, opts: gateway.Options{Filter: gateway.FilterOptions{AcceptPaths: "^/api"}}, path: "/static/hello.txt", want: "200 inside"},
		{name: "files at the root", www: true, opts: gateway.Options{WWWPrefix: "/", APIPrefix: "/api/"}, path: "/hello.txt", want: "200 inside"},
		{name: "files at the root, browser", www: true, opts: gateway.Options{WWWPrefix: "/", APIPrefix: "/api/"}, path: "/page/", accept: browser, want: "200 <p>index"},
		{name: "API beside files at the root", www: true, opts: gateway.Options{WWWPrefix: "/", APIPrefix: "/api/"}, path: "/api/v1", want: "200 /api/v1"},
		{name: "files below the API", www: true, opts: gateway.Options{WWWPrefix: "/custom/www/", APIPrefix: "/custom/"}, path: "/custom/www/hello.txt", want: "200 inside"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.www {
				tc.opts.WWW = site(t)
			}
			r := newRig(t, ok, rigOptions{gateway: tc.opts})
			var headers []string
			if tc.accept != "" {
				headers = []string{"Accept", tc.accept}
			}
			res := r.get(tc.path, headers...)
			got := strings.Fields(res.Status)[0]
			switch body := readAll(t, res); {
			case res.Header.Get("Location") != "":
				got += " " + res.Header.Get("Location")
			case res.StatusCode == 200:
				got += " " + body
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestExtensionBelowThePrefix: the extensions are also served below the API prefix.
func TestExtensionBelowThePrefix(t *testing.T) {
	r := newRig(t, ok, rigOptions{gateway: gateway.Options{APIPrefix: "/k8s"}})
	want := readAll(t, r.get("/watchkeeper/v1/openapi.json"))
	for path, code := range map[string]int{"/k8s/watchkeeper/v1/openapi.json": 200, "/k8s/watchkeeper/v1/nothing": 404} {
		res := r.get(path)
		if body := readAll(t, res); res.StatusCode != code || code == 200 && (body != want || len(body) < 1000) {
			t.Errorf("%s: %d %.200s", path, res.StatusCode, body)
		}
	}
}

func TestPage(t *testing.T) {
	for _, tc := range []struct{ prefix, api string }{
		{"", "../"},
		{"/k8s", "../k8s/"},
		{"/api", "../"}, // as in kubectl proxy: only paths below it are served
	} {
		r := newRig(t, ok, rigOptions{gateway: gateway.Options{APIPrefix: tc.prefix}})
		res := r.get("/ui/")
		if body := readAll(t, res); !strings.Contains(body, "<html") || strings.Contains(body, "style=") || strings.Contains(body, "<script>") {
			t.Errorf("page:\n%s", body)
		}
		if got := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none';") {
			t.Errorf("policy %q", got)
		}
		want := fmt.Sprintf(`{"api":%q,"extension":"../watchkeeper/v1/"}`+"\n", tc.api)
		if got := readAll(t, r.get("/ui/config.json")); got != want {
			t.Errorf("below %q, the page gets %s, want %s", tc.prefix, got, want)
		}
		if res := r.get("/ui/other"); res.StatusCode != http.StatusNotFound {
			t.Errorf("other: %s", res.Status)
		}
		if res := r.do(http.MethodPost, "/ui/", nil); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST: %s", res.Status)
		}
	}
}

func TestInvalidOptions(t *testing.T) {
	up, err := upstream.New(&rest.Config{Host: "http://127.0.0.1:1"}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	www := site(t)
	for _, tc := range []struct {
		opts gateway.Options
		want string
	}{
		{gateway.Options{}, "no upstream"},
		{gateway.Options{Upstream: up, WWW: filepath.Join(www, "nothing")}, "--www: "},
		{gateway.Options{Upstream: up, WWW: filepath.Join(www, "hello.txt")}, "is not a directory"},
		{gateway.Options{Upstream: up, WWW: www, WWWPrefix: "/"}, "change --api-prefix or --www-prefix"},
	} {
		if _, err := gateway.New(tc.opts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %q", err, tc.want)
		}
	}
	for _, host := range []string{"https://a b", "host/path"} {
		if _, err := upstream.New(&rest.Config{Host: host}, upstream.Options{}); err == nil {
			t.Errorf("host %q accepted", host)
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newRig(t, ok, rigOptions{gateway: gateway.Options{Registerer: registry}})
	for _, req := range []struct{ method, path, host string }{
		{"GET", "/api/v1/pods", "localhost"},
		{"GET", "/api/v1/namespaces/a/pods", "localhost"},
		{"GET", "/api/v1/namespaces/a/pods/p", "localhost"},
		{"GET", "/api/v1/namespaces/a", "localhost"},
		{"GET", "/api/v1/namespaces/a/status", "localhost"},
		{"GET", "/apis/apps/v1/deployments?watch=1", "localhost"},
		{"GET", "/apis/apps/v1/watch/deployments", "localhost"},
		{"GET", "/version", "localhost"},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", "localhost"},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments", "localhost"},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments/d", "localhost"},
		{"BREW", "/api", "localhost"},
		{"GET", "/ui/", "localhost"},
		{"GET", "/api", "evil"},
	} {
		readAll(t, r.do(req.method, req.path, nil, "Host", req.host))
	}
	r.stop()
	want := `# HELP watchkeeper_requests_total Requests by verb, by the part of the gateway that answered, and by status code.
# TYPE watchkeeper_requests_total counter
watchkeeper_requests_total{code="200",source="passthrough",verb="create"} 1
watchkeeper_requests_total{code="200",source="passthrough",verb="delete"} 1
watchkeeper_requests_total{code="200",source="passthrough",verb="deletecollection"} 1
watchkeeper_requests_total{code="200",source="passthrough",verb="get"} 4
watchkeeper_requests_total{code="200",source="passthrough",verb="list"} 2
watchkeeper_requests_total{code="200",source="passthrough",verb="other"} 1
watchkeeper_requests_total{code="200",source="passthrough",verb="watch"} 2
watchkeeper_requests_total{code="200",source="static",verb="get"} 1
watchkeeper_requests_total{code="403",source="filter",verb="get"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "watchkeeper_requests_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	durations := map[string]uint64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if h := m.GetHistogram(); family.GetName() == "watchkeeper_request_duration_seconds" {
				durations[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = h.GetSampleCount()
			}
		}
	}
	if diff := cmp.Diff(map[string]uint64{ // without watches
		"passthrough create": 1, "passthrough delete": 1, "passthrough deletecollection": 1, "passthrough get": 4,
		"passthrough list": 2, "passthrough other": 1, "static get": 1, "filter get": 1,
	}, durations); diff != "" {
		t.Errorf("durations of requests: %s", diff)
	}
	if log := r.log.String(); strings.Contains(log, "watch=1") || !strings.Contains(log, "path=/apis/apps/v1/deployments ") {
		t.Errorf("requests are not logged by path without query:\n%s", log)
	}
}

// TestUpstreamMetrics: metrics show whether the API server answers, and when it last did.
func TestUpstreamMetrics(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	registry := prometheus.NewRegistry()
	newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"major":"1","gitVersion":"v1.35.0"}`)
	}), rigOptions{gateway: gateway.Options{Registerer: registry}})
	const text = `# HELP watchkeeper_upstream_up 1 if the API server sent something within the last seconds, or answers now, and is ready.
# TYPE watchkeeper_upstream_up gauge
watchkeeper_upstream_up %d
`
	const never = `# HELP watchkeeper_upstream_last_contact_timestamp_seconds When the API server last answered, or sent something on a watch; 0 if it never did.
# TYPE watchkeeper_upstream_last_contact_timestamp_seconds gauge
watchkeeper_upstream_last_contact_timestamp_seconds 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(never+fmt.Sprintf(text, 0)),
		"watchkeeper_upstream_up", "watchkeeper_upstream_last_contact_timestamp_seconds"); err != nil {
		t.Error(err)
	}
	down.Store(false)
	before := time.Now()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(text, 1)), "watchkeeper_upstream_up"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "watchkeeper_upstream_last_contact_timestamp_seconds" {
			if at := family.GetMetric()[0].GetGauge().GetValue(); at < float64(before.UnixMilli())/1000 || at > float64(time.Now().UnixMilli()+1)/1000 {
				t.Errorf("the last contact was at %v", at)
			}
		}
	}
}

func TestStatusIsIndentedForPeople(t *testing.T) {
	r := newRig(t, ok, rigOptions{gateway: gateway.Options{Filter: gateway.FilterOptions{RejectPaths: "secrets"}}})
	const compact = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"path \"/api/v1/secrets\" is rejected by --reject-paths","reason":"Forbidden","code":403}` + "\n"
	for _, tc := range []struct {
		query, agent string
		pretty       bool
	}{
		{"", "kubectl/v1.36", false},
		{"", "curl/8.5.0", true},
		{"", "Wget/1.21", true},
		{"", "Mozilla/5.0 (X11)", true},
		{"", "Mozilla/4.0", false},
		{"?pretty", "curl/8.5.0", true},
		{"?pretty=0", "curl/8.5.0", false},
		{"?pretty=false", "curl/8.5.0", false},
		{"?pretty=1", "kubectl/v1.36", true},
		{"?pretty=true", "kubectl/v1.36", true},
		{"?x=pretty", "kubectl/v1.36", false},
	} {
		res := r.get("/api/v1/secrets"+tc.query, "User-Agent", tc.agent)
		got := readAll(t, res)
		if tc.pretty {
			if !strings.HasPrefix(got, "{\n  \"kind\": \"Status\",\n") || strings.HasSuffix(got, "\n") {
				t.Errorf("%+v: %q", tc, got)
			}
		} else if diff := cmp.Diff(compact, got); diff != "" {
			t.Errorf("%+v:\n%s", tc, diff)
		}
		if res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Cache-Control") != "no-cache, private" {
			t.Errorf("headers %v", res.Header)
		}
	}
}
