// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package passthrough_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/passthrough"
)

// TestRecordedRead: while the API server does not answer, the error of a read has the command that
// reads the record, if the resource is recorded.
func TestRecordedRead(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	server, err := upstream.New(&rest.Config{Host: gone.URL}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := passthrough.New(passthrough.Options{
		Upstream: server, Documents: upstream.NewDocuments(server), Logger: slog.New(slog.DiscardHandler),
		Remembers: func(id kube.Resource) bool { return id.Name == "pods" },
	})
	for path, want := range map[string]string{
		"/api/v1/namespaces/shop/pods/a":  "'watchkeeper at now -- get pods a -n shop'",
		"/api/v1/namespaces/shop/secrets": "",
	} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if says := strings.Contains(w.Body.String(), "What is recorded can be read"); w.Code != http.StatusServiceUnavailable || says != (want != "") || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestSilentServer: while the API server is known not to answer, reads are given up after three
// seconds, also those that began before, and writes only before they are sent.
func TestSilentServer(t *testing.T) {
	for name, test := range map[string]struct {
		method, path string
		connects     bool
		took         time.Duration // 0 is until the client gives up
	}{
		"read":                    {http.MethodGet, "/api/v1/namespaces/shop/pods", true, maxTook},
		"read, no connection":     {http.MethodGet, "/api/v1/namespaces/shop/pods", false, maxTook},
		"write, no connection":    {http.MethodPost, "/api/v1/namespaces/shop/pods", false, maxTook},
		"write":                   {http.MethodPost, "/api/v1/namespaces/shop/pods", true, 0},
		"request of a Pod's port": {http.MethodGet, "/api/v1/namespaces/shop/pods/a/proxy/restart", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := informertest.NewNetwork(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
				defer api.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				over := ctx.Done()
				server, err := upstream.New(&rest.Config{Host: api.URL().String(), Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					if !test.connects {
						<-over
						return nil, context.Canceled
					}
					return api.Dial(ctx, network, address)
				}}, upstream.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer server.Close()
				go server.Monitor(ctx)
				p := passthrough.New(passthrough.Options{
					Upstream: server, Documents: upstream.NewDocuments(server), Logger: slog.New(slog.DiscardHandler),
					Remembers: func(kube.Resource) bool { return false },
				})
				began, w := time.Now(), httptest.NewRecorder()
				func() {
					defer func() { _ = recover() }() // http.ErrAbortHandler
					p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, test.method, test.path, nil))
				}()
				took := time.Since(began)
				if test.took == 0 {
					if took < time.Minute {
						t.Errorf("given up after %v: %d %s", took, w.Code, w.Body)
					}
				} else if took > test.took || w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the API server does not answer") {
					t.Errorf("after %v: %d %s", took, w.Code, w.Body)
				}
			})
		})
	}
}

// maxTook is until the monitor knows, in the worst case, and a second.
const maxTook = 14 * time.Second
