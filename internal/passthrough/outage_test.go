// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package passthrough_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/passthrough"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
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
