// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// sharedDiffers are rules whose endpoints differ in shared mode: the gateway's 401 is in
// JSON, and it has no anonymous user.
var sharedDiffers = []string{"UnauthorizedInYAML", "EmptyToken"}

// startShared starts a gateway in shared mode, with the rights that the chart gives it, and
// returns it as the endpoint of a ServiceAccount with all rights, and the API server as the
// same user.
func startShared(t *testing.T) (want, got *compare.Endpoint) {
	t.Helper()
	token, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Rules compare what each side serves of every kind, from its cache.
	extra := map[string][]string{"": {"secrets", "podtemplates"}}
	for _, group := range []string{
		"conformance.example.com", "admissionregistration.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
		"flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
	} {
		extra[group] = []string{"*"}
	}
	kubeconfig, err := cluster.ChartKubeconfig(t.Context(), extra)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := cluster.SharedGateway(t.TempDir(), "--kubeconfig", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	gw = shared.Gateway
	config := &tls.Config{RootCAs: shared.Roots}
	as := func(url string) *compare.Endpoint {
		e := endpoint(url, config, config)
		for _, client := range []*http.Client{e.Client, e.HTTP2} {
			client.Transport = clustertest.Bearer{Token: token, Next: client.Transport}
		}
		dial := e.Dial
		e.Dial = func(ctx context.Context) (net.Conn, error) {
			conn, err := dial(ctx)
			return &bearerConn{Conn: conn, token: token}, err
		}
		return e
	}
	return as(cluster.Config.Host), as(gw.URL)
}

// A bearerConn adds a token to the request that is first written, for a WebSocket.
type bearerConn struct {
	net.Conn
	token string // empty once it is written
}

// Write implements io.Writer.
func (c *bearerConn) Write(p []byte) (int, error) {
	head, rest, ok := bytes.Cut(p, []byte("\r\n"))
	if c.token == "" || !ok {
		return c.Conn.Write(p)
	}
	_, err := c.Conn.Write(fmt.Appendf(nil, "%s\r\nAuthorization: Bearer %s\r\n%s", head, c.token, rest))
	c.token = ""
	return len(p), err
}
