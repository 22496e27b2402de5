// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// cachedInShared is what gateways in shared mode cache besides the chart's default: extraResources
// in its values.
var cachedInShared = map[string][]string{"": {"podtemplates"}, "notes.example.org": {"*"}, "export.example.com": {"*"}}

// startShared starts a gateway in shared mode, with the rights that the chart gives it, and
// with further flags of serve.
func startShared(t *testing.T, flags ...string) *clustertest.SharedGateway {
	t.Helper()
	kubeconfig, err := cluster.ChartKubeconfig(t.Context(), cachedInShared)
	if err != nil {
		t.Fatal(err)
	}
	g, err := cluster.SharedGateway(t.TempDir(), append([]string{"--kubeconfig", kubeconfig}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the gateway in shared mode:\n%s", g.Log())
		}
		ended(t, g.Gateway)
	})
	return g
}

// A sharedUser has a token or a client certificate.
type sharedUser struct {
	name  string // at the API server
	token string
	cert  *tls.Certificate
	roots *x509.CertPool

	clients [2]*http.Client // over HTTP/1.1 and HTTP/2, for the API server and the gateway
}

// newSharedUser returns a user with a token; or with a client certificate, if the token is
// empty.
func newSharedUser(t *testing.T, g *clustertest.SharedGateway, name, token string) *sharedUser {
	t.Helper()
	u := &sharedUser{name: name, token: token, roots: g.Roots}
	if token == "" {
		cert, key, err := cluster.ClientCert(name)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		u.cert = &pair
	}
	for i := range u.clients {
		var p http.Protocols
		p.SetHTTP1(i == 0)
		p.SetHTTP2(i == 1)
		transport := &http.Transport{TLSClientConfig: u.tls(), Protocols: &p, DisableCompression: true}
		t.Cleanup(transport.CloseIdleConnections)
		u.clients[i] = &http.Client{Transport: bearer{token, transport}}
	}
	return u
}

func (u *sharedUser) tls() *tls.Config {
	c := &tls.Config{RootCAs: u.roots}
	if u.cert != nil {
		c.Certificates = []tls.Certificate{*u.cert}
	}
	return c
}

// dial opens a TLS connection for HTTP/1.1.
func (u *sharedUser) dial(url string) func(context.Context) (net.Conn, error) {
	config := u.tls()
	config.NextProtos = []string{"http/1.1"}
	return func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", strings.TrimPrefix(url, "https://"))
	}
}

// get sends a GET over HTTP/1.1.
func (u *sharedUser) get(ctx context.Context, url string) (answer, error) {
	return ask(ctx, u.clients[0], url, "application/json")
}

// bearer adds a token to requests, unless it is empty.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// inParallel calls do with 0 to n-1, at most 16 at once.
func inParallel(n int, do func(int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}
