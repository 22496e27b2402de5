// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// fakeReader serves pods and nothing else.
type fakeReader struct {
	runErr  error
	drained bool
}

func (f *fakeReader) serve(w *recorder, r *http.Request) bool {
	if r.URL.Path != "/api/v1/pods" {
		return false
	}
	io.WriteString(w, "cached")
	return true
}

func (f *fakeReader) serveAt(w *recorder, r *http.Request, when kube.Moment) {
	io.WriteString(w, "at "+when.String()+" "+r.URL.Path)
}

func (f *fakeReader) run(ctx context.Context) error {
	if f.runErr != nil {
		return f.runErr
	}
	<-ctx.Done()
	return nil
}

func (f *fakeReader) drain(context.Context) { f.drained = true }

func (f *fakeReader) resources() []ResourceStatus {
	return []ResourceStatus{{Resource: "services"}, {Resource: "pods"}}
}

func TestReaderComesBeforePassthrough(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "upstream") }))
	defer upstream.Close()
	up, err := NewUpstream(&rest.Config{Host: upstream.URL}, UpstreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	g, err := New(Options{Upstream: up, APIPrefix: "/k", Filter: FilterOptions{RejectMethods: "POST"}})
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakeReader{}
	g.reader = fake

	for _, tc := range []struct{ method, path, want string }{
		{"GET", "/k/api/v1/pods", "cached"},
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
	if diff := cmp.Diff([]string{"pods", "services"}, names); diff != "" {
		t.Error(diff)
	}

	g.Drain(t.Context())
	if !fake.drained {
		t.Error("reader not drained")
	}
	fake.runErr = errors.New("broken")
	if err := g.Run(t.Context()); !errors.Is(err, fake.runErr) {
		t.Errorf("Run: %v", err)
	}
}
