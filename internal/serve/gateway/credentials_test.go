// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// authEcho answers with the Authorization it got; it also refuses upgrades with it, so
// that both transports can be tested.
var authEcho = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, r.ProtoMajor, " ", r.Header.Get("Authorization"), " ", r.Header.Get("Impersonate-User"))
})

func TestGatewayCredentials(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("from-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(dir, "plugin")
	const script = `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}'
`
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		config func(*rest.Config)
		want   string
	}{
		{"token", func(c *rest.Config) { c.BearerToken = "fixed" }, "Bearer fixed "},
		{"token file", func(c *rest.Config) { c.BearerTokenFile = token }, "Bearer from-file "},
		{"password", func(c *rest.Config) { c.Username, c.Password = "jane", "x" }, "Basic amFuZTp4 "},
		{"impersonation", func(c *rest.Config) { c.BearerToken, c.Impersonate.UserName = "fixed", "joe" }, "Bearer fixed joe"},
		{"plugin", func(c *rest.Config) {
			c.ExecProvider = &api.ExecConfig{
				APIVersion: "client.authentication.k8s.io/v1", Command: plugin, InteractiveMode: api.NeverExecInteractiveMode,
			}
		}, "Bearer from-plugin "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, authEcho, rigOptions{tlsUpstream: true, config: tc.config})
			if got := readAll(t, r.get("/version")); got != "2 "+tc.want {
				t.Errorf("got %q", got)
			}
			_, _, res := upgrade(t, r, "websocket", "")
			if body, err := io.ReadAll(res.Body); err != nil || string(body) != "1 "+tc.want {
				t.Errorf("for an upgrade: %q, %v", body, err)
			}
		})
	}
}

// The gateway does not replace the credentials of a client.
func TestClientCredentialsAreKept(t *testing.T) {
	r := newRig(t, authEcho, rigOptions{tlsUpstream: true, config: func(c *rest.Config) {
		c.BearerToken = "gateway"
		c.Impersonate.UserName = "jane"
	}})
	for _, connection := range []string{"", "close, Authorization, Impersonate-User"} { // asks to remove these headers
		if got := readAll(t, r.get("/version", "Authorization", "Bearer client", "Impersonate-User", "joe", "Connection", connection)); got != "2 Bearer client joe" {
			t.Errorf("with Connection: %s: got %q", connection, got)
		}
	}
}

// TestClientCredentialsWithTransport: a transport that replaces the server also gets
// the requests of callers with credentials.
func TestClientCredentialsWithTransport(t *testing.T) {
	r := newRig(t, nil, rigOptions{config: func(c *rest.Config) {
		c.Host, c.Transport = "http://recording", transportFunc(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			authEcho(w, r)
			resp := w.Result()
			resp.Request = r
			return resp, nil
		})
	}})
	if got := readAll(t, r.get("/version", "Authorization", "Bearer client")); got != "1 Bearer client " {
		t.Errorf("got %q", got)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f transportFunc) CloseIdleConnections() {}
