// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// A harness has the state that the scenarios share: a control plane, which is started
// when it is first needed, and what gateways and fake API servers need to start.
type harness struct {
	ctx    context.Context
	sizes  sizes
	report *report.Report
	report.Log

	real    *clustertest.Cluster
	writer  *writer              // there
	created bool                 // its Pods are created
	none    *clustertest.Cluster // starts gateways in front of fake API servers; it has no control plane
	work    string               // directory of the gateway's key and certificate
	roots   *x509.CertPool
}

func newHarness(ctx context.Context, s sizes, t *report.Report, progress io.Writer) *harness {
	return &harness{ctx: ctx, sizes: s, report: t, Log: report.NewLog(progress)}
}

func (r *harness) close() {
	for _, c := range []*clustertest.Cluster{r.real, r.none} {
		if c != nil {
			c.Close()
		}
	}
	if r.work != "" {
		os.RemoveAll(r.work)
	}
}

// cluster returns the control plane, with the writer's ConfigMaps.
func (r *harness) cluster() (*clustertest.Cluster, error) {
	if r.real != nil {
		return r.real, nil
	}
	r.Say("starting a control plane…")
	c, err := clustertest.Start(1)
	if err != nil {
		return nil, err
	}
	r.real = c
	r.writer, err = newWriter(r.ctx, c)
	return c, err
}

// direct returns the API server itself.
func (r *harness) direct() (*endpoint, error) {
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	config, err := rest.TLSConfigFor(c.Config)
	if err != nil {
		return nil, err
	}
	client, url, err := c.Client()
	if err != nil {
		return nil, err
	}
	pid, err := c.PID("kube-apiserver")
	if err != nil {
		return nil, err
	}
	e := &endpoint{name: "direct", debug: client, debugURL: url}
	if e.pid, err = strconv.Atoi(pid); err != nil {
		return nil, err
	}
	e.target = streams.Target{Address: strings.TrimPrefix(url, "https://"), TLS: config, Protocol: streams.HTTP2}
	if token := c.Config.BearerToken; token != "" {
		e.target.Header = map[string]string{"Authorization": "Bearer " + token}
	}
	return e, nil
}

// gateway starts a gateway in front of a cluster, with HTTP/2 and TLS, or with HTTP/1.1
// and no TLS. args are additional flags. The caller calls stop.
func (r *harness) gateway(c *clustertest.Cluster, p streams.Protocol, args ...string) (e *endpoint, stop func(), err error) {
	args = append(args, "--shutdown-grace", "1s")
	var config *tls.Config
	if p == streams.HTTP2 {
		cert, key, err := r.keys()
		if err != nil {
			return nil, nil, err
		}
		args = append(args, "--tls-cert-file", cert, "--tls-private-key-file", key)
		config = &tls.Config{RootCAs: r.roots}
	}
	g, err := c.Gateway(args...)
	if err != nil {
		return nil, nil, err
	}
	_, address, _ := strings.Cut(g.URL, "://")
	return &endpoint{
		name: "gateway", pid: g.PID(), debug: http.DefaultClient, debugURL: g.Admin,
		target: streams.Target{Address: address, TLS: config, Protocol: p},
	}, func() { g.Terminate() }, nil
}

// three is kube-apiserver and two gateways in front of it, one per protocol.
type three struct {
	direct, secure, plain *endpoint
	stop                  func()
}

func (t *three) all() []*endpoint { return []*endpoint{t.direct, t.secure, t.plain} }

// three starts gateways in front of the control plane, and waits until all three
// servers serve a collection from their caches. The caller calls stop.
func (r *harness) three(path string) (t *three, err error) {
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	t = &three{}
	if t.direct, err = r.direct(); err != nil {
		return nil, err
	}
	var stopSecure, stopPlain func()
	if t.secure, stopSecure, err = r.gateway(c, streams.HTTP2); err != nil {
		return nil, err
	}
	if t.plain, stopPlain, err = r.gateway(c, streams.HTTP1); err != nil {
		stopSecure()
		return nil, err
	}
	t.stop = func() {
		stopSecure()
		stopPlain()
	}
	for _, e := range t.all() {
		if err := e.warm(r.ctx, path); err != nil {
			t.stop()
			return nil, err
		}
	}
	return t, nil
}

// open opens watches, and waits until the server has finished the work that this
// causes. The caller closes them.
func (r *harness) open(t streams.Target, o streams.Options) (*streams.Set, error) {
	set, err := streams.Open(r.ctx, t, o)
	if err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	if err := report.Sleep(r.ctx, settle); err != nil {
		set.Close()
		return nil, err
	}
	return set, nil
}

// keys returns the files of the gateway's certificate and key, which it creates once.
func (r *harness) keys() (cert, key string, err error) {
	if r.work == "" {
		if r.work, err = os.MkdirTemp("", "bench-fanout-"); err != nil {
			return "", "", err
		}
	}
	cert, key = filepath.Join(r.work, "cert.pem"), filepath.Join(r.work, "key.pem")
	if r.roots != nil {
		return cert, key, nil
	}
	pair, ca, err := fakeapi.SelfSigned()
	if err != nil {
		return "", "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return "", "", err
	}
	if err := os.WriteFile(cert, ca, 0o600); err != nil {
		return "", "", err
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return "", "", err
	}
	r.roots = x509.NewCertPool()
	r.roots.AppendCertsFromPEM(ca)
	return cert, key, nil
}
