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
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/bench/fanout/streams"
	"github.com/watchkeeper/watchkeeper/bench/fanout/tally"
	"github.com/watchkeeper/watchkeeper/bench/informer/apiserver"
	"github.com/watchkeeper/watchkeeper/internal/clustertest"
)

// A rig is what the scenarios share: a control plane, started when it is first
// needed, and the way to start gateways and cannons.
type rig struct {
	ctx      context.Context
	sizes    sizes
	tally    *tally.Tally
	progress io.Writer
	start    time.Time
	scenario string

	real   *clustertest.Cluster
	writer *writer              // there
	none   *clustertest.Cluster // of the gateways in front of cannons
	work   string               // keys
	roots  *x509.CertPool
}

func newRig(ctx context.Context, s sizes, t *tally.Tally, progress io.Writer) *rig {
	return &rig{ctx: ctx, sizes: s, tally: t, progress: progress, start: time.Now()}
}

func (r *rig) close() {
	for _, c := range []*clustertest.Cluster{r.real, r.none} {
		if c != nil {
			c.Close()
		}
	}
	if r.work != "" {
		os.RemoveAll(r.work)
	}
}

// say reports progress.
func (r *rig) say(format string, args ...any) {
	fmt.Fprintf(r.progress, "%5.0fs  %s: %s\n", time.Since(r.start).Seconds(), r.scenario, fmt.Sprintf(format, args...))
}

// sleep waits for what is not to be measured to be over.
func (r *rig) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// cluster returns the control plane, with the ConfigMaps of the writer in it.
func (r *rig) cluster() (*clustertest.Cluster, error) {
	if r.real != nil {
		return r.real, nil
	}
	r.say("starting a control plane…")
	c, err := clustertest.Start(1)
	if err != nil {
		return nil, err
	}
	r.real = c
	r.writer, err = newWriter(r.ctx, c)
	return c, err
}

// direct returns the API server itself.
func (r *rig) direct() (*endpoint, error) {
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

// gateway starts a gateway in front of a cluster: HTTP/2 with TLS, or HTTP/1.1
// without; with further flags. The caller calls stop.
func (r *rig) gateway(c *clustertest.Cluster, p streams.Protocol, args ...string) (e *endpoint, stop func(), err error) {
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

// keys makes the gateway's key and certificate once.
func (r *rig) keys() (cert, key string, err error) {
	if r.work == "" {
		if r.work, err = os.MkdirTemp("", "bench-fanout-"); err != nil {
			return "", "", err
		}
	}
	cert, key = filepath.Join(r.work, "cert.pem"), filepath.Join(r.work, "key.pem")
	if r.roots != nil {
		return cert, key, nil
	}
	pair, ca, err := apiserver.SelfSigned()
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

// A gun is a synthetic API server in a process of its own, and a gateway in
// front of it.
type gun struct {
	url     string
	target  streams.Target // of the cannon itself
	gateway *endpoint
	stop    func()
}

// load starts a cannon with a number of Pods, and a gateway.
func (r *rig) load(pods int, p streams.Protocol) (g *gun, err error) {
	if r.none == nil {
		if r.none, err = clustertest.Without(); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addresses, end, err := apiserver.Start(exec.Command(self, "-cannon", strconv.Itoa(pods)))
	if err != nil {
		return nil, err
	}
	url := addresses["http"].URL
	e, stop, err := r.gateway(r.none, p, "--server", url)
	if err != nil {
		end()
		return nil, err
	}
	return &gun{
		url: url, gateway: e,
		target: streams.Target{Address: strings.TrimPrefix(url, "http://"), Protocol: streams.HTTP1},
		stop: func() {
			stop()
			end()
		},
	}, nil
}

// fire has the cannon make n changes, rate in a second, or all at once if that
// is 0; and returns when they are made.
func (r *rig) fire(g *gun, n int, rate float64) error {
	url := fmt.Sprintf("%s/bench/events?n=%d", g.url, n)
	if rate > 0 {
		url += fmt.Sprintf("&rate=%g", rate)
	}
	req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannon: %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
