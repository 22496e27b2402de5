// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// DefaultGateway is the URL of a gateway on this machine.
	DefaultGateway = "http://127.0.0.1:8001"
	// Variable is the environment variable with the default of --server.
	Variable = "WATCHKEEPER_SERVER"
	// NoGateway is the value of [Variable] with which no gateway is looked for.
	NoGateway = "none"
)

// Flags are kubectl's connection flags, with their meaning there. The server may be
// replaced by a gateway; see [Flags.Use].
type Flags struct {
	*genericclioptions.ConfigFlags
	UserAgent string                                    // "" for client-go's
	Wrap      func(http.RoundTripper) http.RoundTripper // of the transport; nil for none
	Err       io.Writer                                 // says that a gateway is silent; nil for nothing

	local   string                // URL of the gateway on this machine
	gateway string                // replaces the server of the context; "" for none
	verify  *rest.TLSClientConfig // how the certificate of gateway is verified; nil: as the context's
	own     *pflag.FlagSet        // what AddTo added
}

// NewFlags returns kubectl's connection flags.
func NewFlags() *Flags {
	f := &Flags{local: DefaultGateway, ConfigFlags: genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50)}
	f.WithWrapConfigFn(f.config)
	return f
}

// config returns the configuration of the client, from that of the kubeconfig and flags.
func (f *Flags) config(c *rest.Config) *rest.Config {
	if f.gateway != "" {
		c = rest.CopyConfig(c)
		c.Host, c.APIPath = f.gateway, ""
	}
	if f.gateway != "" && f.verify != nil {
		c.Insecure, c.CAFile, c.CAData, c.ServerName, c.Proxy = false, "", f.verify.CAData, f.verify.ServerName, nil
	}
	if Plain(c.Host) {
		anonymous := rest.AnonymousClientConfig(c)
		anonymous.Impersonate = c.Impersonate
		if f.gateway != "" { // the authorities and the proxy are those of another server
			anonymous.TLSClientConfig, anonymous.Proxy = rest.TLSClientConfig{}, nil
		}
		c = anonymous
	}
	if f.UserAgent != "" {
		c.UserAgent = f.UserAgent
	}
	if f.gateway != "" {
		c.Wrap(f.probed)
	}
	if f.Wrap != nil {
		c.Wrap(f.Wrap)
	}
	return c
}

// Plain reports whether a server gets no credentials: its URL is not https.
func Plain(host string) bool { return !strings.HasPrefix(host, "https:") }

// Server returns the server that --server or [Variable] names; "" for none.
func (f *Flags) Server() (server string, err error) {
	source := "--server"
	server = *f.APIServer
	if server == "" {
		source = Variable
		if server = os.Getenv(Variable); server == NoGateway {
			return "", nil
		}
	}
	if server == "" {
		return "", nil
	}
	u, err := url.Parse(server)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%s %q is not a URL: use one such as %s", source, server, DefaultGateway)
	case u.RawQuery != "", u.ForceQuery, strings.Contains(server, "#"):
		return "", fmt.Errorf("%s %q has a query or a fragment: use a URL such as %s", source, server, DefaultGateway)
	}
	return strings.TrimSuffix(server, "/"), nil
}

// Use makes a gateway, or another server, the one that the flags lead to. The context's
// credentials are sent to it only over https.
func (f *Flags) Use(server string) { f.gateway = server }

// ownCredentials reports whether flags choose credentials other than those of a context.
func (f *Flags) ownCredentials() bool {
	for _, flag := range []*string{
		f.AuthInfoName, f.BearerToken, f.Username, f.Password, f.CertFile, f.KeyFile, f.CAFile,
		f.Impersonate, f.ImpersonateUID, f.TLSServerName,
	} {
		if flag != nil && *flag != "" {
			return true
		}
	}
	return f.ImpersonateGroup != nil && len(*f.ImpersonateGroup) > 0 || *f.Insecure ||
		f.ImpersonateUserExtra != nil && len(*f.ImpersonateUserExtra) > 0
}

// configured reports whether a kubeconfig, or the environment of a Pod, names a server.
func (f *Flags) configured() bool {
	raw, err := f.ToRawKubeConfigLoader().RawConfig()
	if err != nil || len(raw.Contexts) > 0 || len(raw.Clusters) > 0 {
		return true // kubectl reports the error
	}
	c, err := f.ToRawKubeConfigLoader().ClientConfig()
	return err != nil || c.Host != clientcmd.ClusterDefaults.Server
}

// AddTo adds the flags to those of a command. As in kubectl, the command's help shows only the
// most important of them.
func (f *Flags) AddTo(flags *pflag.FlagSet) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(own)
	f.own = own
	if server := own.Lookup("server"); server != nil {
		server.Usage = "URL of the server, usually a gateway, including its --api-prefix if it has one; " + Variable + " overrides the default"
	}
	shown := []string{"server", "namespace", "kubeconfig", "context"}
	for _, name := range shown {
		if flag := own.Lookup(name); flag != nil {
			flags.AddFlag(flag)
		}
	}
	own.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(shown, flag.Name) {
			flag.Hidden = true
			flags.AddFlag(flag)
		}
	})
}

// Typed returns some of the flags as they may be typed again in a shell, each after a space, if they
// were given.
func (f *Flags) Typed(names ...string) (text string) {
	for _, name := range names {
		flag := f.own.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if value == "" || strings.ContainsAny(value, " \t\n'\"\\$`*?[]#~&|;<>(){}!") {
			value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
		if flag.Shorthand != "" {
			text += " -" + flag.Shorthand + " " + value
		} else {
			text += " --" + name + " " + value
		}
	}
	return text
}

// Arguments returns the flags that were given, except --server and --namespace, as arguments
// for kubectl.
func (f *Flags) Arguments() (args []string) {
	f.own.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed || flag.Name == "server" || flag.Name == "namespace" {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	return args
}
