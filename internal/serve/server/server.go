// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
)

const (
	defaultGrace = 10 * time.Second

	// lingerTime is how long connections without a request may take to close:
	// HTTP/2 needs a second to deliver its last frame.
	lingerTime = 1500 * time.Millisecond

	readHeaderTimeout = 30 * time.Second
	idleConnTimeout   = 3 * time.Minute
	maxHeaderBytes    = 1 << 20

	// maxStreams is the number of concurrent requests on an HTTP/2 connection.
	// Every watch is one. A proxy that multiplexes its clients would soon reach
	// the default of 100 to 250.
	maxStreams = 20000
)

// Options configure [Run]. RESTConfig is required. The zero values of the other fields
// are usable; with those of Address and Port, Run listens on any free port of every
// interface.
type Options struct {
	// RESTConfig describes the API server and the gateway's credentials.
	RESTConfig *rest.Config

	// Address and Port are the main listener's; port 0 is any free port.
	Address string
	Port    int

	// UnixSocket is a path to listen on instead. An unused socket there is
	// replaced; any other file is an error.
	UnixSocket string

	// Cert selects the certificate; the zero value is for local mode without TLS.
	Cert CertOptions

	// Impersonator describes the API server with the credentials by which callers of shared
	// mode are impersonated that have no token; nil if they are not.
	Impersonator *rest.Config

	// StandardHTTP2 is set to serve HTTP/2 with net/http instead of package h2.
	StandardHTTP2 bool

	// AdminListen is the host:port of /livez, /readyz, /metrics and
	// /debug/pprof; empty means none.
	AdminListen string

	// ShutdownGrace is how long open requests may continue after ctx ends. Zero
	// means 10 s.
	ShutdownGrace time.Duration

	// Audit configures the audit log of shared mode; the zero value disables it.
	Audit audit.Options

	// Record selects what is recorded, and where.
	Record RecordOptions

	// Upstream and Gateway are passed on. Run sets their Logger, and Gateway's
	// Upstream, History and Registerer.
	Upstream upstream.Options
	Gateway  gateway.Options

	// Version and Revision identify the program in the metrics.
	Version, Revision string

	// Logger receives the log; nil discards it.
	Logger *slog.Logger

	// OnListening is called when both listeners are open. The second URL is empty
	// without an admin listener.
	OnListening func(mainURL, adminURL string)
}

// RecordOptions select what is recorded. The zero value disables recording.
type RecordOptions struct {
	// Dir has one subdirectory per cluster; empty disables recording.
	Dir string
	// Missing is why there is no directory although recording is enabled.
	Missing error
	// Select, MaxAge and MaxBytes are as in [recorder.Options].
	Select   recorder.Selection
	MaxAge   time.Duration
	MaxBytes int64
}

// Run serves until ctx ends, then drains and returns nil. An error means that it
// could not start, or that a listener failed.
func Run(ctx context.Context, opts Options) error {
	s, err := newServer(ctx, opts)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// server is a gateway with its listeners open and nothing running yet.
type server struct {
	opts     Options
	log      *slog.Logger
	registry *prometheus.Registry
	up       *upstream.Server
	// impersonator is the API server as the identity that impersonates; nil for none.
	impersonator *upstream.Server
	gw           *gateway.Gateway
	rec          *recorder.Recorder // nil if recording is disabled
	main         *endpoint
	audit        *audit.Auditor // nil if auditing is off
	cert         *certificate   // nil without TLS
	admin        *endpoint      // nil without one
}

// endpoint is a listener and the HTTP server on it.
type endpoint struct {
	name     string
	listener net.Listener
	http     *http.Server
	tls      bool
}

func newServer(ctx context.Context, opts Options) (*server, error) {
	if opts.RESTConfig == nil {
		return nil, errors.New("server: no REST config")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.ShutdownGrace == 0 {
		opts.ShutdownGrace = defaultGrace
	}
	s := &server{opts: opts, log: opts.Logger, registry: prometheus.NewRegistry()}
	registry := s.registry
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(opts),
	)
	var err error
	upOpts := opts.Upstream
	upOpts.Logger = s.log
	if s.up, err = upstream.New(opts.RESTConfig, upOpts); err != nil {
		return nil, err
	}
	if s.rec, err = newRecorder(opts.Record, s.up, s.log, registry); err != nil {
		return nil, err
	}
	if opts.Gateway.Shared != nil && opts.Impersonator != nil {
		if opts.Gateway.Shared.Impersonator, err = upstream.New(opts.Impersonator, upOpts); err != nil {
			return nil, err
		}
		s.impersonator = opts.Gateway.Shared.Impersonator
	}
	if opts.Gateway.Shared != nil {
		if s.audit, err = audit.New(opts.Audit, s.log); err != nil {
			return nil, err
		}
		if s.audit != nil {
			registry.MustRegister(s.audit)
		}
		opts.Gateway.Audit = s.audit
	}
	gwOpts := opts.Gateway
	gwOpts.Upstream, gwOpts.History, gwOpts.Logger, gwOpts.Registerer = s.up, s.rec, s.log, registry
	if s.gw, err = gateway.New(gwOpts); err != nil {
		return nil, err
	}
	if s.cert, err = s.openCertificate(ctx); err != nil {
		return nil, err
	}
	tlsConfig := s.tlsConfig(s.cert)

	listener, err := listen(ctx, opts)
	if err != nil {
		return nil, err
	}
	s.main = &endpoint{name: "main", listener: listener, http: s.newHTTPServer(s.gw), tls: tlsConfig != nil}
	s.main.http.TLSConfig = tlsConfig
	if !opts.StandardHTTP2 {
		h2.Configure(s.main.http)
		if tlsConfig != nil {
			s.main.listener = h2.Listener(listener)
		}
	}
	if opts.AdminListen != "" {
		listener, err := listenTCP(ctx, "admin-listen", opts.AdminListen)
		if err != nil {
			s.main.listener.Close()
			return nil, err
		}
		s.admin = &endpoint{name: "admin", listener: listener, http: s.newHTTPServer(newAdmin(s.gw, s.up, s.rec, registry, listener.Addr()))}
	}
	if err := openHistory(ctx, s.rec); err != nil {
		for _, e := range s.endpoints() {
			e.listener.Close()
		}
		return nil, err
	}
	return s, nil
}

func (s *server) newHTTPServer(handler http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: httpstream.WriteTimeout},
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleConnTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(&errorLog{log: s.log}, "", 0),
	}
}

func (s *server) run(ctx context.Context) error {
	// The gateway outlives ctx: it drains first.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 3)
	var edge, leaf, recording sync.WaitGroup
	// The recorder stops after the gateway, to record everything that it saw.
	last, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecording()
	if s.rec != nil {
		recording.Go(func() { s.rec.Run(last, s.gw.Cache()) })
	}
	if s.cert != nil {
		for _, run := range s.cert.run {
			leaf.Go(func() { run(inner) })
		}
	}
	// The audit log ends after the last request.
	auditing, stopAudit := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAudit()
	if s.audit != nil {
		recording.Go(func() {
			if err := s.audit.Run(auditing); err != nil {
				s.log.Error("the audit log was not closed", "err", err)
			}
		})
	}
	leaf.Go(func() {
		if err := s.gw.Run(inner); err != nil {
			failed <- err
		}
	})
	s.gw.WaitReady(ctx)
	for _, e := range s.endpoints() {
		edge.Go(func() {
			if err := e.serve(); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("%s listener: %w", e.name, err)
			}
		})
	}
	s.announce()
	edge.Go(func() { // once, so that the log of a wrong upstream has its cause
		if err := s.up.Probe(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("the API server does not answer as one; serving continues", "cause", err)
		}
	})

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.drain(inner)
	stop()
	leaf.Wait()
	stopRecording()
	stopAudit()
	recording.Wait()
	if s.admin != nil {
		s.admin.http.Close()
	}
	edge.Wait()
	s.up.Close()
	if s.impersonator != nil {
		s.impersonator.Close()
	}
	s.log.Info("stopped")
	return err
}

// drain ends the clients' requests within the grace period.
func (s *server) drain(ctx context.Context) {
	s.log.Info("draining", "grace", s.opts.ShutdownGrace)
	ctx, cancel := context.WithTimeout(ctx, s.opts.ShutdownGrace)
	defer cancel()
	linger, cancelLinger := context.WithCancel(ctx)
	defer cancelLinger()

	var shutdown sync.WaitGroup
	shutdown.Go(func() {
		// Shutdown closes the listener at once and then waits for requests, except
		// those on hijacked connections.
		if err := s.main.http.Shutdown(linger); err != nil {
			s.main.http.Close()
		}
	})
	s.gw.Drain(ctx)
	if ctx.Err() != nil {
		s.log.Warn("grace period over, closing open requests")
	}
	// No request is left; a browser's idle connection must not delay the end.
	timer := time.AfterFunc(lingerTime, cancelLinger)
	defer timer.Stop()
	shutdown.Wait()
}

func (s *server) endpoints() []*endpoint {
	if s.admin == nil {
		return []*endpoint{s.main}
	}
	return []*endpoint{s.admin, s.main}
}

// announce logs where the server listens, and warns about dangerous options.
func (s *server) announce() {
	mainURL, adminURL := s.main.url(), ""
	if s.admin != nil {
		adminURL = s.admin.url()
	}
	s.log.Info("serving", "url", mainURL, "admin", adminURL, "upstream", s.up.Host())
	if s.opts.Gateway.Shared == nil && !isLoopback(s.main.listener.Addr()) {
		s.log.Warn("listening beyond loopback: every client that reaches this address acts with the gateway's credentials, "+
			"and host names other than localhost must be in --accept-hosts", "address", s.main.listener.Addr().String())
	}
	if s.opts.Gateway.Shared == nil && s.opts.Gateway.Filter.Disabled {
		s.log.Warn("request filter is disabled: a web page may reach the cluster through this address by DNS rebinding")
	}
	if s.opts.Gateway.AllowProxiedPages {
		s.log.Warn("proxied pages are allowed: a page of a Pod, Service or Node that is opened through this address acts with the gateway's credentials")
	}
	if p := s.up.IgnoredPath(); p != "" {
		s.log.Warn("the path of the server URL is ignored: see --append-server-path", "path", p)
	}
	if s.opts.OnListening != nil {
		s.opts.OnListening(mainURL, adminURL)
	}
}

func (e *endpoint) serve() error {
	if e.tls {
		return e.http.ServeTLS(e.listener, "", "")
	}
	return e.http.Serve(e.listener)
}

func (e *endpoint) url() string {
	addr := e.listener.Addr()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		// Clients cannot connect to an unspecified address. --accept-hosts includes
		// this one by default.
		addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
	}
	switch {
	case addr.Network() == "unix":
		return "unix://" + addr.String()
	case e.tls:
		return "https://" + addr.String()
	}
	return "http://" + addr.String()
}
