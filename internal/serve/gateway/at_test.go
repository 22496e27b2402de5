// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// TestAtPaths: the prefix of a past path is removed, discovery is passed through to the
// API server, and writes are refused.
func TestAtPaths(t *testing.T) {
	apiserver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "upstream "+r.Method+" "+r.URL.RequestURI())
	}))
	defer apiserver.Close()
	up, err := upstream.New(&rest.Config{Host: apiserver.URL}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	const which = "use now, an age such as 10m, 1h30m or 2d, a time such as 2026-01-31T15:04:05Z, 2026-01-31 15:04:05 or 15:04, or a resourceVersion such as 12031"
	for _, test := range []struct {
		options      Options
		method, path string
		code         int
		want         string
	}{
		{method: "GET", path: "/at/rv:12/api/v1/pods", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/at/rv%3A12/api/v1/pods?x=1", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/%61t/rv:12/api/v1/pods", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/at/2026-01-31T15:04:05.25Z/api/v1/pods", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/at/2026-01-31T17:04:05%2B02:00/api/v1/pods", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/at/2026-01-31T17:04:05+02:00/api/v1/namespaces/a/pods/b", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/at/10m/api/v1/namespaces/a/pods/b/log", code: 404, want: "not their subresources"},

		{method: "GET", path: "/at/12/api/v1/pods", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/at/15:04/api/v1/pods", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/at/2026-01-31%2017:04:05%2B02:00/api/v1/pods", code: 404, want: "nothing is recorded here"},
		{method: "GET", path: "/at/2026-01-31%2017:04:05/api/v1/pods", code: 404, want: "nothing is recorded here"},

		{method: "GET", path: "/at/10m", code: 200, want: "upstream GET /"},
		{method: "GET", path: "/at/10m/", code: 200, want: "upstream GET /"},
		{method: "GET", path: "/at/10m/api", code: 200, want: "upstream GET /api"},
		{method: "GET", path: "/at/10m/api/v1?timeout=32s", code: 200, want: "upstream GET /api/v1?timeout=32s"},
		{method: "GET", path: "/at/10m/apis/apps/v1", code: 200, want: "upstream GET /apis/apps/v1"},
		{method: "GET", path: "/at/10m/openapi/v3/apis/apps/v1?hash=A%2FB", code: 200, want: "upstream GET /openapi/v3/apis/apps/v1?hash=A%2FB"},
		{method: "GET", path: "/at/10m/version", code: 200, want: "upstream GET /version"},
		{method: "HEAD", path: "/at/10m/apis", code: 200},
		{method: "HEAD", path: "/at/10m/api/v1/pods", code: 405},

		{method: "POST", path: "/at/10m/api/v1/namespaces/a/pods", code: 405, want: "the past can only be read"},
		{method: "PUT", path: "/at/10m/api/v1/namespaces/a/pods/b", code: 405, want: "the past can only be read"},
		{method: "PATCH", path: "/at/10m/api/v1/namespaces/a/pods/b", code: 405, want: "the past can only be read"},
		{method: "DELETE", path: "/at/10m/api/v1/namespaces/a/pods", code: 405, want: "the past can only be read"},
		{method: "POST", path: "/at/10m/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?x=1", code: 200, want: "upstream POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews?x=1"},
		{method: "POST", path: "/at/10m/apis/authentication.k8s.io/v1/selfsubjectreviews", code: 200, want: "upstream POST /apis/authentication.k8s.io/v1/selfsubjectreviews"},
		{method: "POST", path: "/at/xyz/apis/authentication.k8s.io/v1/selfsubjectreviews", code: 400, want: which},
		{method: "PUT", path: "/at/10m/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", code: 405, want: "the past can only be read"},
		{method: "POST", path: "/at/10m/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/", code: 405, want: "the past can only be read"},
		{method: "POST", path: "/at/10m/apis/authorization.k8s.io/v1/subjectaccessreviews", code: 405, want: "the past can only be read"},
		{method: "POST", path: "/at/10m/apis/authentication.k8s.io/v1/tokenreviews", code: 405, want: "the past can only be read"},
		{method: "GET", path: "/at/10m/api/v1/namespaces/a/pods/b/exec", code: 405, want: "the past can only be read"},
		{method: "GET", path: "/at/10m/api/v1/namespaces/a/pods/b/portforward", code: 405, want: "the past can only be read"},

		{method: "GET", path: "/at", code: 400, want: "no moment in the path"},
		{method: "GET", path: "/at/xyz/api", code: 200, want: "upstream GET /api"},
		{method: "GET", path: "/at/xyz/apis?timeout=32s", code: 200, want: "upstream GET /apis?timeout=32s"},
		{method: "GET", path: "/at/xyz/api/v1/pods", code: 400, want: which},
		{method: "GET", path: "/at/-5m/api/v1/pods", code: 400, want: which},
		{method: "GET", path: "/at/rv:0/api/v1/pods", code: 400, want: "a resourceVersion above 0"},
		{method: "GET", path: "/at/rv:x/api/v1/pods", code: 400, want: "a resourceVersion above 0"},
		{method: "POST", path: "/at/xyz/api/v1/pods", code: 400, want: which},

		{Options{Filter: FilterOptions{RejectPaths: "^/api/v1/pods"}}, "GET", "/at/10m/api/v1/pods", 403, "rejected by --reject-paths"},
		{Options{Filter: FilterOptions{AcceptPaths: "^/api/v1/pods"}}, "GET", "/at/10m/api/v1/pods", 404, "nothing is recorded here"},
		{Options{Filter: FilterOptions{AcceptPaths: "^/api/v1/pods"}}, "GET", "/at/10m/api/v1/nodes", 403, "not accepted by --accept-paths"},
		{Options{Filter: FilterOptions{RejectMethods: "GET"}}, "GET", "/at/10m/api/v1/pods", 403, "rejected by --reject-methods"},
		{Options{APIPrefix: "/k/"}, "GET", "/k/at/rv:12/api/v1/pods", 404, "nothing is recorded here"},
		{Options{Filter: FilterOptions{RejectPaths: "selfsubject"}}, "POST", "/at/10m/apis/authentication.k8s.io/v1/selfsubjectreviews", 403, "rejected by --reject-paths"},
		{Options{APIPrefix: "/k/"}, "POST", "/k/at/10m/apis/authentication.k8s.io/v1/selfsubjectreviews", 200, "upstream POST /apis/authentication"},
		{Options{APIPrefix: "/k/"}, "GET", "/k/at/rv:12/apis", 200, "upstream GET /apis"},
		{Options{APIPrefix: "/k/"}, "GET", "/at/rv:12/apis", 404, "served below /k/"},
		{Options{APIPrefix: "/api/"}, "GET", "/at/rv:12/api/v1/pods", 404, "nothing is recorded here"},
		{Options{APIPrefix: "/api/"}, "GET", "/at/rv:12/apis/apps/v1/deployments", 404, "served below /api/"},
	} {
		test.options.Upstream = up
		g, err := New(test.options)
		if err != nil {
			t.Fatal(err)
		}
		rec := httptest.NewRecorder()
		g.ServeHTTP(rec, httptest.NewRequest(test.method, "http://localhost"+test.path, nil))
		if got := rec.Body.String(); rec.Code != test.code || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, rec.Code, got, test.code, test.want)
		}
		if allow := fmt.Sprint(rec.Header()["Allow"]); test.code == 405 && !strings.Contains(allow, "GET") {
			t.Errorf("%s %s: 405 that allows %s", test.method, test.path, allow)
		}
	}
}
