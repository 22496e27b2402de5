// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/cli/sharedmode"
	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/serve/server"
)

const (
	defaultPort        = 8001
	defaultAdminListen = "127.0.0.1:8002"
	defaultWindow      = "64Mi"
	// minWindow holds a large object or a few hundred small ones.
	minWindow = 1 << 20
)

// The values of --http2.
const (
	http2Own      = "own"
	http2Standard = "standard"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	streams
	config    *genericclioptions.ConfigFlags
	server    server.Options
	window    values.Bytes // bytes
	http2     string
	record    recordOptions
	shared    sharedmode.Flags
	logFormat string
	verbosity int
}

func newServe(s streams) *cobra.Command {
	o := &serveOptions{streams: s, config: connect.NewUpstreamFlags()}
	o.window.Quantity = resource.MustParse(defaultWindow)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Kubernetes API of a cluster to any number of clients",
		Long: `Serve the Kubernetes API of a cluster. LIST, GET and WATCH are served from one
watch per resource; everything else is passed through. The flags of kubectl
proxy are supported, with the same meaning.

The resources in --record are recorded on disk, so that clients can read the past
and a restart needs no list.

Clients without their own credentials act with the gateway's. Therefore it
listens on loopback by default. With --shared every client needs credentials, and
reads what the API server allows it to read.`,
		Example: `  # In front of the cluster of the current context
  watchkeeper serve
  kubectl -s http://127.0.0.1:8001 get pods --watch

  # Another context, any free port, and static files
  watchkeeper serve --context staging --port 0 --www ./public

  # Record everything except Events, for a month, in another directory
  watchkeeper serve --record '*' --record-exclude events --history-max-age 30d --data-dir /data

  # For everybody in the cluster, each with their own rights
  watchkeeper serve --shared --address 0.0.0.0 --tls-san watchkeeper.monitoring.svc

  # On a Unix socket
  watchkeeper serve --unix-socket /tmp/watchkeeper.sock
  curl --unix-socket /tmp/watchkeeper.sock http://localhost/api`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *serveOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	s, g := &o.server, &o.server.Gateway

	f.StringVar(&s.Address, "address", "127.0.0.1", "IP address to serve on")
	f.IntVarP(&s.Port, "port", "p", defaultPort, "port to serve on; 0 uses a free one and prints it")
	f.StringVarP(&s.UnixSocket, "unix-socket", "u", "", "path of a Unix socket to serve on, instead of a port")
	f.StringVar(&s.Cert.File, "tls-cert-file", "", "certificate (and chain) for TLS; reloaded when it changes; with --shared, the default is a self-signed one in --cert-dir or --cert-secret")
	f.StringVar(&s.Cert.KeyFile, "tls-private-key-file", "", "private key of --tls-cert-file")
	f.StringVar(&o.http2, "http2", http2Own, "who serves HTTP/2: own, the gateway's server, which delivers watches at less cost, or standard, Go's net/http")
	o.shared.AddTo(f, s)
	f.StringVar(&s.AdminListen, "admin-listen", defaultAdminListen, "host:port of /livez, /readyz, /metrics and /debug/pprof; empty disables them")
	f.DurationVar(&s.ShutdownGrace, "shutdown-grace", 10*time.Second, "how long requests may continue after SIGTERM; watches, followed logs, exec, attach and port-forward end at once")

	f.StringVar(&g.APIPrefix, "api-prefix", "/", "path to serve the API below")
	f.StringVarP(&g.WWW, "www", "w", "", "directory of static files to serve below --www-prefix")
	f.StringVarP(&g.WWWPrefix, "www-prefix", "P", "/static/", "path to serve the files of --www below")
	f.StringVar(&g.Filter.AcceptHosts, "accept-hosts", gateway.DefaultAcceptHosts, "regular expressions of the hosts to accept, separated by commas")
	f.StringVar(&g.Filter.AcceptPaths, "accept-paths", gateway.DefaultAcceptPaths, "regular expressions of the paths to accept")
	f.StringVar(&g.Filter.RejectPaths, "reject-paths", gateway.DefaultRejectPaths, "regular expressions of paths to reject, even if accepted")
	f.StringVar(&g.Filter.RejectMethods, "reject-methods", gateway.DefaultRejectMethods, "regular expressions of the HTTP methods to reject (example: 'POST,PUT,PATCH')")
	f.BoolVar(&g.Filter.Disabled, "disable-filter", false, "accept every host, path and method; dangerous, because a web page may then reach the cluster through this address")
	f.BoolVar(&g.Filter.ReadOnly, "read-only", false, "refuse, for every client and even with --disable-filter, what could change the cluster: all methods but GET, HEAD and OPTIONS, and exec, attach, port-forward and proxy")
	f.BoolVar(&g.AllowProxiedPages, "allow-proxied-pages", false, "let web pages that come through the API server, such as dashboards behind /proxy, run outside a sandbox; dangerous, because every Pod, Service and Node whose page is opened may then do in the cluster what you may")
	f.DurationVar(&g.IdleTimeout, "idle-timeout", 30*time.Minute, "how long to watch a resource without readers")

	f.Var(&o.window, "window-bytes", "memory for past events per resource, such as 64Mi; limits how far back a watch can resume and how far it can lag")
	f.DurationVar(&g.WindowAge, "window-age", 0, "how long to keep past events in memory; 0 means as long as --window-bytes allows")

	o.record.addFlags(f)

	f.DurationVar(&s.Upstream.KeepAlive, "keepalive", 0, "keep-alive period of connections to the API server; 0 means 30s, a negative value disables it")
	f.BoolVar(&s.Upstream.AppendServerPath, "append-server-path", false, "prepend the path of the server URL to every request path")
	o.config.AddFlags(f)

	f.StringVar(&o.logFormat, "log-format", "text", "log format: text or json")
	f.IntVarP(&o.verbosity, "v", "v", 0, "log verbosity: 0 is information, 4 and above is debugging")
}

func (o *serveOptions) run(cmd *cobra.Command) error {
	if o.server.UnixSocket != "" {
		for _, flag := range []string{"port", "address", "tls-cert-file", "tls-private-key-file"} {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--unix-socket and --%s cannot be combined: leave one out", flag)
			}
		}
	}
	if cmd.Flags().Changed("www-prefix") && o.server.Gateway.WWW == "" {
		return errors.New("--www-prefix is where the files of --www are served: add --www, or leave it out")
	}
	if p := o.server.Port; p < 0 || p > 65535 {
		return fmt.Errorf("--port %d is not a port: use 0 to 65535", p)
	}
	for flag, d := range map[string]time.Duration{"shutdown-grace": o.server.ShutdownGrace, "idle-timeout": o.server.Gateway.IdleTimeout} {
		if d <= 0 {
			return fmt.Errorf("--%s %v is not positive: use a duration such as 10s", flag, d)
		}
	}
	switch o.http2 {
	case http2Own, http2Standard:
		o.server.StandardHTTP2 = o.http2 == http2Standard
	default:
		return fmt.Errorf("--http2 %q is not known: use own or standard", o.http2)
	}
	o.server.Gateway.WindowBytes = o.window.Value()
	if b := o.server.Gateway.WindowBytes; b < minWindow {
		return fmt.Errorf("--window-bytes %s is too small: use 1Mi or more, such as %s", o.window.String(), defaultWindow)
	}
	if d := o.server.Gateway.WindowAge; d < 0 {
		return fmt.Errorf("--window-age %v is negative: use an age such as 1h, or 0 for no limit", d)
	}
	var err error
	if err = o.shared.Options(cmd, &o.server); err != nil {
		return err
	}
	if o.server.Record, err = o.record.options(cmd); err != nil {
		return err
	}
	log, err := newLogger(o.err, o.logFormat, o.verbosity)
	if err != nil {
		return err
	}
	if o.server.RESTConfig, err = connect.Upstream(o.config); err != nil {
		return err
	}
	if o.server.Impersonator, err = o.shared.Impersonator(o.server.RESTConfig); err != nil {
		return err
	}
	o.server.Logger = log
	o.server.Upstream.UserAgent = userAgent()
	v := readVersion()
	o.server.Version, o.server.Revision = v.Version, v.Revision
	if o.logFormat == "text" { // with json, all lines of a container's log are JSON: its "serving" has the URL
		o.server.OnListening = func(mainURL, _ string) {
			fmt.Fprintf(o.out, "Starting to serve on %s\n", mainURL)
		}
	}
	return runUntilSignal(cmd.Context(), func(ctx context.Context) error {
		go server.CollectGarbage(ctx)
		return server.Run(ctx, o.server)
	})
}

// runUntilSignal calls run with a context that the first SIGINT, SIGTERM or
// SIGHUP cancels. If run returns because of that, runUntilSignal returns the
// signal's exit code. After a second signal it returns that code at once, even if
// run has not returned.
func runUntilSignal(ctx context.Context, run func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	var first os.Signal
	for {
		select {
		case err := <-done:
			if first != nil && errors.Is(err, context.Canceled) {
				return codeFor(first)
			}
			return err
		case sig := <-signals:
			if first != nil {
				return codeFor(sig)
			}
			first = sig
			cancel()
		}
	}
}

// codeFor returns the exit code of a process that a signal ended.
func codeFor(sig os.Signal) error {
	if number, ok := sig.(syscall.Signal); ok {
		return exitError(128 + int(number))
	}
	return errors.New("interrupted")
}
