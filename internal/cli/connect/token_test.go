// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// TestNewToken: a server uses the token that its kubeconfig has now, once the API server has refused
// the one before.
func TestNewToken(t *testing.T) {
	accepted := "first"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+accepted {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(token string) {
		t.Helper()
		text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
			"clusters":[{"name":"a","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"a","user":{"token":%q}}]}`, server.URL, token)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	flags := NewUpstreamFlags()
	*flags.KubeConfig = file
	config, err := Upstream(flags)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(want int) {
		t.Helper()
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d, want %d", resp.StatusCode, want)
		}
	}
	get(http.StatusOK)
	accepted = "second"
	get(http.StatusUnauthorized)
	write("second")
	get(http.StatusOK)
	if err := os.Remove(file); err != nil { // as while it is replaced
		t.Fatal(err)
	}
	get(http.StatusOK)
}
