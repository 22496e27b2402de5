// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// TestCacheComesBeforePassthrough: the cache serves the reads that it can, the rest is
// passed through; each is counted by its source.
func TestCacheComesBeforePassthrough(t *testing.T) {
	apiserver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, `{"status":{"allowed":true}}`)
			return
		}
		io.WriteString(w, "upstream")
	}))
	defer apiserver.Close()
	up, err := upstream.New(&rest.Config{Host: apiserver.URL}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	g, err := New(Options{Upstream: up, APIPrefix: "/k", Filter: FilterOptions{RejectMethods: "POST"}})
	if err != nil {
		t.Fatal(err)
	}
	services := kube.Resource{Version: "v1", Name: "services"}
	for _, id := range []kube.Resource{services, pods} {
		res := g.reads.cache.Insert(id, metav1.APIResource{Name: id.Name, Namespaced: true})
		res.Timeline.Reset(podList(10, pod("d", "a", 5)))
	}
	for _, tc := range []struct{ method, path, want string }{
		{"GET", "/k/api/v1/pods?resourceVersion=0", `"name":"a"`},
		{"GET", "/k/api/v1/namespaces/d/pods/a", "upstream"}, // a consistent GET
		{"GET", "/k/api/v1/nodes", "upstream"},
		{"POST", "/k/api/v1/pods", "rejected"},
	} {
		rec := httptest.NewRecorder()
		g.ServeHTTP(rec, httptest.NewRequest(tc.method, "http://localhost"+tc.path, nil))
		if got := rec.Body.String(); !strings.Contains(got, tc.want) {
			t.Errorf("%s %s: %q", tc.method, tc.path, got)
		}
	}
	for _, source := range []string{sourceCache, sourcePassthrough} {
		if n := testutil.ToFloat64(g.metrics.total.WithLabelValues("list", source, "200")); n != 1 {
			t.Errorf("%s: %v requests", source, n)
		}
	}
	var names []string
	for _, res := range g.Resources() {
		names = append(names, res.Resource)
	}
	if !slices.Equal(names, []string{"pods.v1", "services.v1"}) {
		t.Error(names)
	}
	g.Drain(t.Context())
	if err := g.Ready(t.Context()); !errors.Is(err, upstream.ErrShutdown) {
		t.Errorf("ready while draining: %v", err)
	}
}

// TestNotNow: a caller whom the API server cannot be asked for is told to repeat a read for
// which there is no proof of freshness yet; others are passed through.
func TestNotNow(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 4)))
	b.reads.shared = &access.Shared{}
	for token, want := range map[string]int{"": http.StatusServiceUnavailable, "t": 0} {
		w := httptest.NewRecorder()
		r := access.WithCaller(httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil), &access.Caller{User: &user.DefaultInfo{Name: "jane"}, Token: token})
		declined := b.reads.serve(&responseRecorder{ResponseWriter: w, metrics: b.metrics, request: r}, r)
		if (declined == nil) != (want != 0) || want != 0 && (w.Code != want || w.Header().Get("Retry-After") == "") {
			t.Errorf("token %q: %d %s, declined %v", token, w.Code, w.Body, declined)
		}
	}
}
