// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package passthrough_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/passthrough"
)

// TestCookies: in shared mode a Pod behind the API server neither gets the session of the
// proxy that logs people in, nor replaces it.
func TestCookies(t *testing.T) {
	const session = "session=of-a-proxy"
	var sent []string
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Values("Cookie")
		w.Header().Set("Set-Cookie", "session=of-somebody-else")
	}))
	defer up.Close()
	server, err := upstream.New(&rest.Config{Host: up.URL}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	background := upstream.NewBackground()
	defer background.Stop()
	shared := access.NewShared(server, access.Reviews{Certificates: noProxy{}}, access.SharedOptions{}, background, slog.New(slog.DiscardHandler))
	for _, test := range []struct {
		name   string
		shared *access.Shared
		allow  bool
		want   bool
	}{
		{"local mode", nil, false, true},
		{"shared mode", shared, false, false},
		{"shared mode with --allow-proxied-pages", shared, true, true},
	} {
		p := passthrough.New(passthrough.Options{
			Upstream: server, Documents: upstream.NewDocuments(server), Shared: test.shared, AllowPages: test.allow, Logger: slog.New(slog.DiscardHandler),
		})
		for _, upgrade := range []bool{false, true} {
			sent = nil
			r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/a/pods/b/proxy/", nil)
			r.Header.Set("Authorization", "Bearer t")
			r.Header.Set("Cookie", session)
			if upgrade {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "websocket")
			}
			if test.shared != nil {
				r = access.WithCaller(r, &access.Caller{User: &user.DefaultInfo{Name: "jane"}, Token: "t"})
			}
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", test.name, w.Code, w.Body)
			}
			if got := len(sent) == 1 && sent[0] == session; got != test.want || !test.want && sent != nil {
				t.Errorf("%s, upgrade %t: sent %q", test.name, upgrade, sent)
			}
			if got := w.Header().Get("Set-Cookie") != ""; got != test.want {
				t.Errorf("%s, upgrade %t: answered %q", test.name, upgrade, w.Header())
			}
		}
	}
}

// noProxy are the certificates of a cluster without front proxies.
type noProxy struct{ access.Certificates }

func (noProxy) IsProxyHeader(string) bool { return false }
