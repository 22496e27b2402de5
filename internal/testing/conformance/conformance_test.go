// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// cluster and gw are set by TestConformance: other tests need neither.
var (
	cluster *clustertest.Cluster
	gw      *clustertest.Gateway
)

// TestConformance runs all rules against the API server and the gateway, and
// some of them against a gateway that breaks answers. With WATCHKEEPER_SHARED=1, the gateway
// is in shared mode, and both sides are used with the token of a ServiceAccount.
func TestConformance(t *testing.T) {
	env := &Env{}
	conform(t, env, func() { t.Run("broken", func(t *testing.T) { testBroken(t, env) }) })
}

// TestGates runs the rules with all feature gates of the API server on, also those that are
// alpha, and all APIs.
func TestGates(t *testing.T) {
	clustertest.SkipShort(t)
	minor, err := clustertest.Minor()
	if err != nil {
		t.Fatal(err)
	}
	if minor < 37 {
		t.Skip("an older version has gates with which its API server does not start, or not at once")
	}
	env := &Env{Without: []string{"AcceptCBOR", "ShardSelectorIgnored"}}
	conform(t, env, nil, "--feature-gates", "AllAlpha=true,AllBeta=true", "--runtime-config", "api/all=true")
}

// conform runs the rules in a cluster with more flags.
func conform(t *testing.T, env *Env, meanwhile func(), flags ...string) {
	var err error
	if cluster, err = clustertest.Start(2, flags...); err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	env.Compact, env.Sockets = compact, sockets
	if clustertest.IsShared(t) {
		env.Want, env.Got = startShared(t)
		env.Differs = sharedDiffers
	} else {
		if gw, err = cluster.Gateway(); err != nil {
			t.Fatal(err)
		}
		if env.Want, err = apiServer(cluster, cluster.Config.Host); err != nil {
			t.Fatal(err)
		}
		env.Got = gateway(gw.URL)
	}
	if env.Replicas, err = replicas(cluster); err != nil {
		t.Fatal(err)
	}
	Run(t, env, meanwhile)
	if exit := gw.Terminate(); exit != 0 {
		t.Errorf("watchkeeper ended with %d on SIGTERM:\n%s", exit, gw.Log())
	}
}

// replicas returns the cluster's API servers if there are several.
func replicas(c *clustertest.Cluster) ([]*compare.Endpoint, error) {
	urls, err := c.APIServers()
	if err != nil || len(urls) == 1 {
		return nil, err
	}
	var all []*compare.Endpoint
	for _, url := range urls {
		e, err := apiServer(c, url)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// apiServer returns an API server of the cluster, or the balancer, as an endpoint, over
// TLS.
func apiServer(c *clustertest.Cluster, url string) (*compare.Endpoint, error) {
	admin, err := rest.TLSConfigFor(c.Config)
	if err != nil {
		return nil, err
	}
	nobody := admin.Clone()
	nobody.Certificates, nobody.GetClientCertificate = nil, nil
	return endpoint(url, admin, nobody), nil
}

// gateway returns a gateway as an endpoint, without TLS.
func gateway(url string) *compare.Endpoint { return endpoint(url, nil, nil) }

// endpoint returns an endpoint with its clients: with credentials, and without.
func endpoint(url string, with, without *tls.Config) *compare.Endpoint {
	_, host, _ := strings.Cut(url, "://")
	client := func(config *tls.Config, second bool) *http.Client {
		var p http.Protocols
		p.SetHTTP1(!second)
		p.SetHTTP2(second && config != nil)
		p.SetUnencryptedHTTP2(second && config == nil)
		if config != nil {
			config = config.Clone()
			config.NextProtos = nil
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: config, Protocols: &p, DisableCompression: true}}
	}
	dial := func(config *tls.Config) func(context.Context) (net.Conn, error) {
		return func(ctx context.Context) (net.Conn, error) {
			if config == nil {
				return new(net.Dialer).DialContext(ctx, "tcp", host)
			}
			config := config.Clone()
			config.NextProtos = []string{"http/1.1"}
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", host)
		}
	}
	return &compare.Endpoint{
		URL: url, Client: client(with, false), HTTP2: client(with, true), Plain: client(without, false),
		Dial: dial(with), DialPlain: dial(without),
	}
}

// compact compacts etcd up to a revision.
func compact(ctx context.Context, rv uint64) error {
	ports, err := cluster.Ports()
	if err != nil {
		return err
	}
	pki := filepath.Join(cluster.Dir, "pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver-etcd.crt"), filepath.Join(pki, "apiserver-etcd.key"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(pki, "etcd-ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d/v3/kv/compaction", ports["etcd"]),
		bytes.NewReader(fmt.Appendf(nil, `{"revision":"%d","physical":true}`, rv)))
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("compaction: %s %s %w", resp.Status, body, err)
	}
	return nil
}

var socketMetric = regexp.MustCompile(`(?m)^watchkeeper_requests_total\{code="\d+",source="cache",verb="connect"\} (\d+)$`)

// sockets counts the WebSockets that the gateway has served itself.
func sockets(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, gw.Admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, m := range socketMetric.FindAllSubmatch(body, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
