// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/access"
	"github.com/watchkeeper/watchkeeper/internal/audit"
	"github.com/watchkeeper/watchkeeper/internal/connect"
	"github.com/watchkeeper/watchkeeper/internal/fairness"
	"github.com/watchkeeper/watchkeeper/internal/gateway"
	"github.com/watchkeeper/watchkeeper/internal/server"
)

const (
	defaultPort        = 8001
	defaultAdminListen = "127.0.0.1:8002"
	defaultWindow      = "64Mi"
	certDir            = "certs" // in the user's state directory
	defaultCertDir     = defaultDataDir + "/" + certDir
	// minWindow holds a large object or a few hundred small ones.
	minWindow = 1 << 20
)

// serveOptions are the flags of serve.
// The values of --http2.
const (
	http2Own      = "own"
	http2Standard = "standard"
)

type serveOptions struct {
	streams
	config    *genericclioptions.ConfigFlags
	server    server.Options
	window    bytesValue // bytes
	http2     string
	record    recordOptions
	shared    sharedOptions
	logFormat string
	verbosity int
}

// sharedOptions are the flags of serve for shared mode.
type sharedOptions struct {
	on                    bool
	flags                 []*pflag.Flag // the others
	access                access.SharedOptions
	impersonate           bool
	impersonateKubeconfig string
	impersonateAccount    string
	limits                fairness.Limits
	buffered              bytesValue
}

func (o *sharedOptions) addFlags(all *pflag.FlagSet, s *server.Options) {
	all.BoolVar(&o.on, "shared", false, "serve many users over TLS, each with their own rights: clients authenticate as to the API server, which decides what they may read")
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringSliceVar(&o.access.Audiences, "api-audiences", nil, "audiences of the tokens that --shared accepts; by default those of the API server")
	f.StringVar(&s.CertDir, "cert-dir", defaultCertDir, "directory of the self-signed certificate that --shared makes without --tls-cert-file: tls.crt, tls.key, and ca.crt for the clients; made when missing, renewed 30 days before it expires, with a new ca.crt; the default is below $XDG_STATE_HOME if that is set")
	f.StringSliceVar(&s.CertNames, "tls-san", nil, "DNS name or IP address that the self-signed certificate is also for, such as watchkeeper.monitoring.svc; repeatable; localhost, the host name and an IP address in --address are always included")
	f.IntVar(&o.access.Tokens, "token-cache-size", access.DefaultCacheSize, "how many tokens --shared remembers, each for ten seconds")
	f.IntVar(&o.access.Decisions, "decision-cache-size", access.DefaultCacheSize, "how many decisions of the API server --shared remembers, each for ten seconds")
	f.IntVar(&o.limits.Lists, "max-lists-per-user", fairness.DefaultLists, "how many lists one user of --shared may have in flight; further ones wait a while, then get 429")
	f.IntVar(&o.limits.Streams, "max-streams-per-user", fairness.DefaultStreams, "how many watches, followed logs and other streams one user of --shared may have open")
	f.IntVar(&o.limits.Selectors, "max-selectors-per-user", fairness.DefaultSelectors, "how many different label and field selectors the open watches of one user of --shared may have")
	o.buffered.Quantity = *resource.NewQuantity(fairness.DefaultBytes, resource.BinarySI)
	f.Var(&o.buffered, "max-buffered-per-user", "memory for answers that the clients of one user of --shared have not read yet, such as 512Mi; one answer may be larger")
	f.IntVar(&o.limits.Past, "max-past-reads-per-user", fairness.DefaultPast, "how many whole lists of the past, exports, and requests to the history one user of --shared may have at a time, of each")
	f.BoolVar(&o.impersonate, "impersonate", false, "let users without a token, who have a client certificate or come through a front proxy, reach the API server by impersonation; with a second identity, from one of the next two flags")
	f.StringVar(&o.impersonateKubeconfig, "impersonate-kubeconfig", "", "kubeconfig of the identity that impersonates")
	f.StringVar(&o.impersonateAccount, "impersonate-service-account", "", "NAMESPACE/NAME of the ServiceAccount that impersonates; the gateway requests its tokens")
	s.Audit = audit.DefaultOptions()
	a := &s.Audit
	f.StringVar(&a.PolicyFile, "audit-policy-file", "", "file with the audit policy of --shared (audit.k8s.io/v1); rules with the levels Request and RequestResponse count as Metadata")
	f.StringVar(&a.LogPath, "audit-log-path", "", "file for audit events, with --audit-policy-file; '-' is standard output")
	f.IntVar(&a.LogMaxAge, "audit-log-maxage", a.LogMaxAge, "days to keep old audit log files; 0 keeps them regardless of age")
	f.IntVar(&a.LogMaxBackup, "audit-log-maxbackup", a.LogMaxBackup, "number of old audit log files to keep; 0 keeps any number")
	f.IntVar(&a.LogMaxSize, "audit-log-maxsize", a.LogMaxSize, "size in megabytes at which the audit log is rotated; 0 disables rotation")
	f.StringVar(&a.LogFormat, "audit-log-format", a.LogFormat, "format of audit events: json, or legacy for one line of text")
	f.StringVar(&a.LogMode, "audit-log-mode", a.LogMode, "batch writes audit events from a buffer; blocking writes each before the request goes on; blocking-strict also refuses a request that cannot be recorded as received")
	f.BoolVar(&a.LogCompress, "audit-log-compress", false, "compress rotated audit log files with gzip")
	f.IntVar(&a.LogBatchBufferSize, "audit-log-batch-buffer-size", a.LogBatchBufferSize, "audit events to buffer in mode batch; further ones are lost and counted")
	f.VisitAll(func(flag *pflag.Flag) { o.flags = append(o.flags, flag) })
	all.AddFlagSet(f)
}

// options checks the flags, and sets the server's options.
func (o *sharedOptions) options(cmd *cobra.Command, s *server.Options) (err error) {
	if !o.on {
		for _, flag := range o.flags {
			if flag.Changed {
				return fmt.Errorf("--%s is for --shared: add it, or leave this out", flag.Name)
			}
		}
		return nil
	}
	if s.UnixSocket != "" {
		return errors.New("--shared and --unix-socket cannot be combined: leave one out")
	}
	if s.TLSCertFile != "" || s.TLSKeyFile != "" {
		for _, flag := range []string{"cert-dir", "tls-san"} {
			if cmd.Flags().Changed(flag) {
				return fmt.Errorf("--%s is for the self-signed certificate, and --tls-cert-file names another: leave one out", flag)
			}
		}
	} else if !cmd.Flags().Changed("cert-dir") {
		state, err := userStateDir()
		if err != nil {
			return errors.New("no home directory for the self-signed certificate: use --cert-dir, or --tls-cert-file")
		}
		s.CertDir = filepath.Join(state, certDir)
	}
	for flag, n := range map[string]int{"token-cache-size": o.access.Tokens, "decision-cache-size": o.access.Decisions,
		"max-lists-per-user": o.limits.Lists, "max-streams-per-user": o.limits.Streams, "max-selectors-per-user": o.limits.Selectors,
		"max-past-reads-per-user": o.limits.Past,
	} {
		if n < 1 {
			return fmt.Errorf("--%s %d is not positive", flag, n)
		}
	}
	if o.limits.Bytes = o.buffered.Value(); o.limits.Bytes < 1 {
		return fmt.Errorf("--max-buffered-per-user %s is not positive: use a size such as 512Mi", o.buffered.String())
	}
	if !cmd.Flags().Changed("accept-hosts") {
		s.Gateway.Filter.AcceptHosts = ".*" // clients know the Service by many names
	}
	s.Gateway.Shared, s.Gateway.Limits = &o.access, o.limits
	return nil
}

// impersonator returns the configuration of the identity that impersonates, nil for none.
func (o *sharedOptions) impersonator(gateway *rest.Config) (*rest.Config, error) {
	kubeconfig, account := o.impersonateKubeconfig, o.impersonateAccount
	switch {
	case !o.impersonate && kubeconfig+account == "":
		return nil, nil
	case !o.impersonate:
		return nil, errors.New("--impersonate-kubeconfig and --impersonate-service-account are for --impersonate: add it, or leave them out")
	case (kubeconfig == "") == (account == ""):
		return nil, errors.New("--impersonate needs a second identity: one of --impersonate-kubeconfig and --impersonate-service-account")
	case kubeconfig != "":
		flags := connect.NewUpstreamFlags()
		flags.KubeConfig = &kubeconfig
		config, err := connect.Upstream(flags)
		if err != nil {
			return nil, fmt.Errorf("--impersonate-kubeconfig: %w", err)
		}
		return config, nil
	}
	namespace, name, ok := strings.Cut(account, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("--impersonate-service-account %q is not NAMESPACE/NAME", account)
	}
	return access.AsServiceAccount(gateway, namespace, name)
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
	f.StringVar(&s.TLSCertFile, "tls-cert-file", "", "certificate (and chain) for TLS; reloaded when it changes; with --shared, the default is a self-signed one in --cert-dir")
	f.StringVar(&s.TLSKeyFile, "tls-private-key-file", "", "private key of --tls-cert-file")
	f.StringVar(&o.http2, "http2", http2Own, "who serves HTTP/2: own, the gateway's server, which delivers watches at less cost, or standard, Go's net/http")
	o.shared.addFlags(f, s)
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
	if err = o.shared.options(cmd, &o.server); err != nil {
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
	if o.server.Impersonator, err = o.shared.impersonator(o.server.RESTConfig); err != nil {
		return err
	}
	o.server.Logger = log
	o.server.Upstream.UserAgent = userAgent()
	v := readVersion()
	o.server.Version, o.server.Revision = v.Version, v.Revision
	o.server.OnListening = func(mainURL, _ string) {
		fmt.Fprintf(o.out, "Starting to serve on %s\n", mainURL)
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
