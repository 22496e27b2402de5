// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/kubeconfig"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A realGateway is a process, with the credentials of its clients: none in local mode. With
// WATCHKEEPER_SHARED=1, it is in shared mode, and all clients have the token of a
// ServiceAccount that may do everything.
type realGateway struct {
	*clustertest.Gateway
	shared *clustertest.SharedGateway // nil in local mode
	token  string
}

// startGateway starts a gateway in front of the cluster, with further flags of serve.
func startGateway(t *testing.T, c *clustertest.Cluster, flags ...string) (*realGateway, error) {
	if !clustertest.IsShared(t) {
		gw, err := c.Gateway(flags...)
		return &realGateway{Gateway: gw}, err
	}
	token, err := c.AdminToken(t.Context())
	if err != nil {
		return nil, err
	}
	shared, err := c.SharedGateway(filepath.Join(c.Dir, "certs"), flags...)
	if err != nil {
		return nil, err
	}
	return &realGateway{shared.Gateway, shared, token}, nil
}

// http returns a separate HTTP client. The receive buffer of a slow client is small, so
// that the server notices the slow reads. In shared mode, the others use HTTP/2.
func (g *realGateway) http(slow bool) *http.Client {
	d := &net.Dialer{Timeout: 5 * time.Second}
	transport := &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := d.DialContext(ctx, network, addr)
			if tcp, ok := conn.(*net.TCPConn); ok && slow {
				err = tcp.SetReadBuffer(64 << 10)
			}
			return conn, err
		},
	}
	if g.shared == nil {
		return &http.Client{Transport: transport}
	}
	transport.ForceAttemptHTTP2 = !slow
	transport.TLSClientConfig = &tls.Config{RootCAs: g.shared.Roots}
	return &http.Client{Transport: clustertest.Bearer{Token: g.token, Next: transport}}
}

// source returns the gateway for Go informers.
func (g *realGateway) source() (*informer.Source, error) {
	if g.shared == nil {
		return informer.FromURL(g.URL)
	}
	return kubeconfig.FromConfig(g.shared.Config(g.token))
}

// env returns the variables of the environment by which testdata/informer.mjs trusts the
// gateway and has the token.
func (g *realGateway) env() []string {
	if g.shared == nil {
		return nil
	}
	return []string{"NODE_EXTRA_CA_CERTS=" + g.shared.CA, "INFORMER_TOKEN=" + g.token}
}
