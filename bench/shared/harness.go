// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const (
	// settle is the pause in which servers finish work that is not measured.
	settle = 1500 * time.Millisecond
	// timeout bounds the wait for deliveries, and for the end of watches.
	timeout = time.Minute
)

// A harness has the state that the scenarios share: a control plane with its users.
type harness struct {
	ctx    context.Context
	sizes  sizes
	report *report.Report
	report.Log

	work    string // directory of the gateway's certificate, and of the audit policy
	cluster *clustertest.Cluster
	audits  bool // the API server logs reviews, and has all users
	admin   *kubernetes.Clientset
	people  []*person
	api     *endpoint
	crowd   *crowd    // the watches of all users, which held leaves for revoked
	front   *endpoint // of crowd
	serial  int       // of the last update
}

// An endpoint is a measured server.
type endpoint struct {
	pid      int
	target   streams.Target
	debug    *http.Client // for /metrics and /debug/pprof at debugURL
	debugURL string
	stop     func()
}

func newHarness(ctx context.Context, s sizes, t *report.Report, progress io.Writer) *harness {
	return &harness{ctx: ctx, sizes: s, report: t, Log: report.NewLog(progress)}
}

// down ends the control plane and the watches.
func (r *harness) down() {
	r.leave()
	if r.cluster != nil {
		r.cluster.Close()
	}
	if r.work != "" {
		os.RemoveAll(r.work)
	}
	r.cluster, r.people, r.work = nil, nil, ""
}

// up starts a control plane with users, unless it runs. One that audits has an API server
// that logs reviews, and all users; the other has only the first user and the group's
// members. Auditing a review takes the API server time, which is not to be measured.
func (r *harness) up(audits bool) (err error) {
	if r.people != nil && r.audits == audits {
		return nil
	}
	r.down()
	r.Say("starting a control plane…")
	if r.work, err = os.MkdirTemp("", "bench-shared-"); err != nil {
		return err
	}
	var flags []string
	if r.audits = audits; audits {
		policy := filepath.Join(r.work, "policy.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return err
		}
		flags = []string{"--apiserver-arg", "audit-policy-file=" + policy,
			"--apiserver-arg", "audit-log-path=" + r.auditLog(), "--apiserver-arg", "audit-log-maxsize=100000"}
	}
	if r.cluster, err = clustertest.Start(1, flags...); err != nil {
		return err
	}
	config := rest.CopyConfig(r.cluster.Config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if r.admin, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	client, url, err := r.cluster.Client()
	if err != nil {
		return err
	}
	// The API server prefers a client certificate to a token.
	anonymous, err := rest.TLSConfigFor(rest.AnonymousClientConfig(r.cluster.Config))
	if err != nil {
		return err
	}
	pid, err := r.cluster.PID("kube-apiserver")
	if err != nil {
		return err
	}
	r.api = &endpoint{debug: client, debugURL: url, target: streams.Target{Address: strings.TrimPrefix(url, "https://"), TLS: anonymous, Protocol: streams.HTTP2}}
	if r.api.pid, err = strconv.Atoi(pid); err != nil {
		return err
	}
	if err := r.employ(); err != nil {
		return err
	}
	r.people, err = r.populate()
	return err
}

// shared starts a gateway in shared mode. The caller calls stop.
func (r *harness) shared() (*endpoint, error) {
	return r.gateway("--shared", "--cert-dir", r.work, "--kubeconfig", r.kubeconfig())
}

// local starts a gateway in local mode, with the certificate that one in shared mode made.
func (r *harness) local() (*endpoint, error) {
	return r.gateway("--tls-cert-file", filepath.Join(r.work, "tls.crt"), "--tls-private-key-file", filepath.Join(r.work, "tls.key"))
}

func (r *harness) gateway(args ...string) (*endpoint, error) {
	g, err := r.cluster.Gateway(append(args, "--shutdown-grace", "1s")...)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(r.work, "ca.crt"))
	if err != nil {
		g.Terminate()
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, address, _ := strings.Cut(g.URL, "://")
	return &endpoint{
		pid: g.PID(), debug: http.DefaultClient, debugURL: g.Admin, stop: func() { g.Terminate() },
		target: streams.Target{Address: address, TLS: &tls.Config{RootCAs: roots}, Protocol: streams.HTTP2},
	}, nil
}

// warm waits until a gateway serves ConfigMaps from its cache. header is that of a user.
func (e *endpoint) warm(ctx context.Context, path string, header map[string]string) error {
	c, err := streams.Dial(ctx, e.target)
	if err != nil {
		return err
	}
	defer c.Close()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		// The gateway follows the RBAC objects as well, so that a metric over all
		// resources does not tell whether this one is served.
		if _, err = c.Get(path, header); err == nil && time.Since(start) > settle {
			return nil
		}
		if ctx.Err() != nil || time.Since(start) > timeout {
			return fmt.Errorf("warming up: %w", err)
		}
	}
}

func (e *endpoint) cpu() (time.Duration, error) { return process.CPU(e.pid) }

func (e *endpoint) memory() (process.Memory, error) {
	return process.MemoryOf(e.pid, e.debug, e.debugURL)
}

// profile starts to profile a gateway for about a duration, if -profiles is set. wait
// returns when the profile is saved as name.pprof.
func (e *endpoint) profile(name string, d time.Duration) (wait func() error) {
	if *profiles == "" {
		return func() error { return nil }
	}
	return process.Profile(e.debug, e.debugURL, *profiles, name, d)
}
