// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/gateway"
	"github.com/watchkeeper/watchkeeper/internal/httpstream"
	"github.com/watchkeeper/watchkeeper/internal/recorder"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
)

const (
	defaultGrace = 10 * time.Second

	// lingerTime is what connections without a request get to close by
	// themselves: HTTP/2 needs a second to see its last frame through.
	lingerTime = 1500 * time.Millisecond

	readHeaderTimeout = 30 * time.Second
	idleConnTimeout   = 3 * time.Minute
	maxHeaderBytes    = 1 << 20

	// maxStreams is the number of concurrent requests on an HTTP/2
	// connection. Every watch is one, and the default of 100 to 250 is soon
	// used up by a proxy that multiplexes its clients.
	maxStreams = 20000
)

// Options are everything [Run] needs. RESTConfig is required; the zero values
// of the others are usable, though Address and Port then mean any free port on
// every interface.
type Options struct {
	// RESTConfig describes the API server and the gateway's credentials.
	RESTConfig *rest.Config

	// Address and Port are where to listen; port 0 takes a free one.
	Address string
	Port    int

	// UnixSocket is a path to listen at instead. A socket that is already
	// there is replaced, anything else is an error.
	UnixSocket string

	// TLSCertFile and TLSKeyFile turn TLS on. They are read again when they
	// change.
	TLSCertFile string
	TLSKeyFile  string

	// AdminListen is the host:port of /livez, /readyz, /metrics and
	// /debug/pprof; empty means none.
	AdminListen string

	// ShutdownGrace is how long open requests get to end. Zero means 10 s.
	ShutdownGrace time.Duration

	// Record says what is recorded, and where.
	Record RecordOptions

	// Upstream and Gateway are passed on. Gateway's Upstream, History, Logger and
	// Registerer are filled in here.
	Upstream upstream.Options
	Gateway  gateway.Options

	// Logger takes the log; nil discards it.
	Logger *slog.Logger

	// OnListening is called once both listeners are open. The second URL is
	// empty when there is no admin listener.
	OnListening func(mainURL, adminURL string)
}

// RecordOptions say what is recorded. The zero value is nothing.
type RecordOptions struct {
	// Dir is the directory that gets one for each cluster; empty means that
	// nothing is recorded.
	Dir string
	// Missing is why there is no directory, if there should be one.
	Missing error
	// Select, MaxAge and MaxBytes are as in [recorder.Options].
	Select   recorder.Selection
	MaxAge   time.Duration
	MaxBytes int64
}

// openTimeout is how long the start waits for the API server to say whose history
// to open; after that, it is opened while serving.
const openTimeout = 3 * time.Second

// Run serves until ctx ends, then drains and returns nil. An error means that
// it could not start, or that a listener broke.
func Run(ctx context.Context, opts Options) error {
	s, err := newServer(ctx, opts)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// server is a gateway with its listeners open and nothing running yet.
type server struct {
	opts  Options
	log   *slog.Logger
	up    *upstream.Server
	gw    *gateway.Gateway
	rec   *recorder.Recorder // nil if nothing is recorded
	main  *endpoint
	admin *endpoint // nil without one
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
	s := &server{opts: opts, log: opts.Logger}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	var err error
	if s.up, err = upstream.New(opts.RESTConfig, opts.Upstream); err != nil {
		return nil, err
	}
	if s.rec, err = newRecorder(opts.Record, s.up, s.log, registry); err != nil {
		return nil, err
	}
	gwOpts := opts.Gateway
	gwOpts.Upstream, gwOpts.History, gwOpts.Logger, gwOpts.Registerer = s.up, s.rec, s.log, registry
	if s.gw, err = gateway.New(gwOpts); err != nil {
		return nil, err
	}
	tlsConfig, err := newTLSConfig(opts.TLSCertFile, opts.TLSKeyFile, s.log)
	if err != nil {
		return nil, err
	}

	listener, err := listen(ctx, opts)
	if err != nil {
		return nil, err
	}
	if tlsConfig != nil {
		listener = &gatherListener{Listener: listener}
	}
	s.main = &endpoint{name: "main", listener: listener, http: s.newHTTPServer(s.gw), tls: tlsConfig != nil}
	s.main.http.TLSConfig = tlsConfig
	if opts.AdminListen != "" {
		listener, err := listenTCP(ctx, "admin-listen", opts.AdminListen)
		if err != nil {
			s.main.listener.Close()
			return nil, err
		}
		s.admin = &endpoint{name: "admin", listener: listener, http: s.newHTTPServer(newAdmin(s.gw, s.rec, registry, listener.Addr()))}
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
		// What a client does wrong on a connection is no event here.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

func (s *server) run(ctx context.Context) error {
	// The gateway outlives ctx: it drains first.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 3)
	var edge, leaf, recording sync.WaitGroup
	// What the gateway has seen is recorded after its end.
	last, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecording()
	if s.rec != nil {
		recording.Go(func() { s.rec.Run(last) })
	}
	leaf.Go(func() {
		if err := s.gw.Run(inner); err != nil {
			failed <- err
		}
	})
	for _, e := range s.endpoints() {
		edge.Go(func() {
			if err := e.serve(); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("%s listener: %w", e.name, err)
			}
		})
	}
	s.announce()

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.drain(inner)
	stop()
	leaf.Wait()
	stopRecording()
	recording.Wait()
	if s.admin != nil {
		s.admin.http.Close()
	}
	edge.Wait()
	if l, ok := s.main.listener.(*gatherListener); ok {
		l.flushing.Wait()
	}
	s.up.Close()
	s.log.Info("stopped")
	return err
}

// drain ends what clients have open, within the grace period.
func (s *server) drain(ctx context.Context) {
	s.log.Info("draining", "grace", s.opts.ShutdownGrace)
	ctx, cancel := context.WithTimeout(ctx, s.opts.ShutdownGrace)
	defer cancel()
	linger, cancelLinger := context.WithCancel(ctx)
	defer cancelLinger()

	var shutdown sync.WaitGroup
	shutdown.Go(func() {
		// Shutdown closes the listener at once and then waits for requests,
		// except those on connections it no longer owns.
		if err := s.main.http.Shutdown(linger); err != nil {
			s.main.http.Close()
		}
	})
	s.gw.Drain(ctx)
	if ctx.Err() != nil {
		s.log.Warn("grace period over, closing what is still open")
	}
	// No request is left; a browser's spare connection must not hold us up.
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

// announce tells where the server listens, and warns of what is dangerous.
func (s *server) announce() {
	mainURL, adminURL := s.main.url(), ""
	if s.admin != nil {
		adminURL = s.admin.url()
	}
	s.log.Info("serving", "url", mainURL, "admin", adminURL, "upstream", s.up.Host())
	if !isLoopback(s.main.listener.Addr()) {
		s.log.Warn("listening beyond loopback: anybody who reaches this address acts with the gateway's credentials, "+
			"and names other than localhost must be in --accept-hosts", "address", s.main.listener.Addr().String())
	}
	if s.opts.Gateway.Filter.Disabled {
		s.log.Warn("request filter is off: a web page may reach the cluster through this address by DNS rebinding")
	}
	if p := s.up.IgnoredPath(); p != "" {
		s.log.Warn("the path of the server URL is not used: see --append-server-path", "path", p)
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
		// Nobody connects to "any"; and this host is one that is accepted.
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
