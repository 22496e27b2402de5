// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// TestRestrictedPaths: what --api-prefix=/api/ or --reject-paths keeps from being read
// is read by no other route either.
func TestRestrictedPaths(t *testing.T) {
	const deployments, pods = "/apis/apps/v1/deployments", "/api/v1/pods"
	multiwatch := func(path string) string {
		return "/watchkeeper/v1/multiwatch?" + url.Values{"watch": {path + "?watch=1&resourceVersion=0&timeoutSeconds=1"}}.Encode()
	}
	for name, opts := range map[string]gateway.Options{
		"api-prefix":   {APIPrefix: "/api/"},
		"reject-paths": {Filter: gateway.FilterOptions{RejectPaths: "^/apis"}},
		"accept-paths": {Filter: gateway.FilterOptions{AcceptPaths: "^/api/,^/version"}},
		// The prefix holds without the filter.
		"api-prefix, filter disabled": {APIPrefix: "/api/", Filter: gateway.FilterOptions{Disabled: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var asked []string // what is read of the API server
			api := fakeapi.New(fakeapi.Options{})
			c := pasttest.NewCluster(t)
			c.Fill()
			opts.Recording, opts.RecordingSlack = c.Store, 2*time.Minute
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					mu.Lock()
					asked = append(asked, r.URL.Path)
					mu.Unlock()
				}
				api.ServeHTTP(w, r)
			}), rigOptions{gateway: opts})
			get := func(path string) (int, string) {
				res := r.get(path)
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(path, err)
				}
				return res.StatusCode, string(body)
			}
			for _, path := range []string{
				deployments, deployments + "?watch=1", "/api/.." + deployments, "/api/v1/%2e%2e/.." + deployments, "//apis/apps/v1/deployments",
				"/at/1m" + deployments, "/at/1m/api/.." + deployments, "/apis/apps/v1/watch/deployments", "/apis/apps/v1/watch/namespaces/default/deployments/web",
				"/watchkeeper/v1/history/versions/apis/apps/v1/namespaces/default/deployments/web",
				"/watchkeeper/v1/history/versions/api/.." + deployments + "/web",
				"/watchkeeper/v1/story/apis/apps/v1/namespaces/default/deployments/web?since=2h",
				"/watchkeeper/v1/story/api/.." + deployments + "/web",
				"/watchkeeper/v1/history/diff" + deployments + "?from=rv:100",
				"/watchkeeper/v1/history/changes?from=2h&resource=deployments.apps",
				"/watchkeeper/v1/history/counts?from=2h&resource=deployments.apps",
				"/watchkeeper/v1/history/export?from=2h&resource=deployments.apps",
			} {
				if code, body := get(path); code != http.StatusForbidden && code != http.StatusNotFound {
					t.Errorf("%s: %d %.300s", path, code, body)
				}
			}
			for _, path := range []string{deployments, "/api/.." + deployments, "/at/1m" + deployments, "/apis/apps/v1/watch/deployments"} {
				if code, body := get(multiwatch(path)); code == http.StatusOK && !strings.HasPrefix(body, `{"watch":0,"type":"ERROR",`) {
					t.Errorf("multiwatch of %s: %d %.300s", path, code, body)
				}
			}
			for _, path := range []string{
				"/watchkeeper/v1/history", "/watchkeeper/v1/history/changes?from=2h&objects=true",
				"/watchkeeper/v1/history/counts?from=2h", "/watchkeeper/v1/history/export?from=2h",
			} {
				if code, body := get(path); code != http.StatusOK || strings.Contains(body, "deployment") || strings.Contains(body, "Deployment") {
					t.Errorf("%s: %d %.300s", path, code, body)
				}
			}
			if code, body := get("/watchkeeper/v1/story/api/v1/namespaces/default/pods/a?since=2h"); code != http.StatusOK || !strings.Contains(body, `"denied":["deployments.apps"`) || strings.Contains(body, "Deployment") {
				t.Errorf("a story: %d %.500s", code, body)
			}
			mu.Lock()
			for _, path := range asked {
				if strings.Contains(path, "apis") && !request.IsDiscovery(path) { // the gateway reads discovery for itself
					t.Errorf("%s was read of the API server", path)
				}
			}
			mu.Unlock()
			for _, path := range []string{pods + "?resourceVersion=0", "/at/1m" + pods, multiwatch(pods), "/watchkeeper/v1/history/diff" + pods + "?from=rv:100"} {
				if code, body := get(path); code != http.StatusOK || strings.HasPrefix(body, `{"watch":0,"type":"ERROR",`) {
					t.Errorf("%s: %d %.300s", path, code, body)
				}
			}
		})
	}
}
