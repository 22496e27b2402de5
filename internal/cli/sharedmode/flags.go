// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharedmode has the flags of serve for shared mode.
package sharedmode

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/cli/values"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/serve/server"
)

// Flags are the flags of serve for shared mode.
type Flags struct {
	on                    bool
	flags                 []*pflag.Flag // the others
	access                access.SharedOptions
	impersonate           bool
	impersonateKubeconfig string
	impersonateAccount    string
	limits                fairness.Limits
	certSecret            string
	caConfigMap           string
	buffered              values.Bytes
}

// AddTo adds the flags to a set. They set options of s.
func (o *Flags) AddTo(all *pflag.FlagSet, s *server.Options) {
	all.BoolVar(&o.on, "shared", false, "serve many users over TLS, each with their own rights: clients authenticate as to the API server, which decides what they may read")
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringSliceVar(&o.access.Audiences, "api-audiences", nil, "audiences of the tokens that --shared accepts; by default those of the API server")
	o.addCertificateFlags(f, &s.Cert)
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

// Options checks the flags, and sets the server's options.
func (o *Flags) Options(cmd *cobra.Command, s *server.Options) (err error) {
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
	if err := o.certificate(cmd, &s.Cert); err != nil {
		return err
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
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 { // GOMEMLIMIT
		o.limits.AllBytes = limit / 2
	}
	if !cmd.Flags().Changed("accept-hosts") {
		s.Gateway.Filter.AcceptHosts = ".*" // clients know the Service by many names
	}
	s.Gateway.Shared, s.Gateway.Limits = &o.access, o.limits
	return nil
}

// Impersonator returns the configuration of the identity that impersonates, nil for none.
func (o *Flags) Impersonator(gateway *rest.Config) (*rest.Config, error) {
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
	ref, err := namespacedName("impersonate-service-account", account)
	if err != nil {
		return nil, err
	}
	return access.AsServiceAccount(gateway, ref.Namespace, ref.Name)
}
