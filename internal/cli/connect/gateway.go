// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// dialTimeout bounds the attempt to connect to this machine.
const dialTimeout = time.Second

// Gateway chooses the gateway for a command that needs one, and returns its URL: that of
// [Flags.Server]; that of this machine, if it is up; the server of the context, if it is a
// gateway; the one in the context's cluster ([Flags.UseService]); otherwise that of this machine.
// It does not fail because a gateway does not answer. Once a server is in use, that is the
// gateway.
func (f *Flags) Gateway(ctx context.Context) (server string, err error) {
	if f.gateway != "" {
		return f.gateway, nil
	}
	if server, err = f.Server(); err != nil {
		return "", err
	}
	excluded := f.excludesLocal()
	if server == "" && (excluded || !f.localUp(ctx)) {
		if server = f.UseContext(ctx); server == "" {
			if server, err = f.UseService(ctx); err != nil {
				return "", err
			}
		}
	}
	switch {
	case server != "":
	case excluded:
		return "", fmt.Errorf("%s=%s excludes the gateway on this machine, and there is no other one: name it with --server", Variable, NoGateway)
	default:
		server = f.local
	}
	f.Use(server)
	return server, nil
}

// excludesLocal reports whether the gateway of this machine is not to be used.
func (f *Flags) excludesLocal() bool { return *f.APIServer == "" && os.Getenv(Variable) == NoGateway }

// localUp reports whether something listens where the gateway of this machine would.
func (f *Flags) localUp(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(f.local, "http://"))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// UseContext makes the server of the context the gateway, if it is one, and returns its URL; ""
// if it is not.
func (f *Flags) UseContext(ctx context.Context) (server string) {
	config, err := f.ToRESTConfig()
	if err != nil || !f.configured() {
		return ""
	}
	u, err := ServerURL(config)
	if err != nil {
		return ""
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return ""
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if _, err := fetch(ctx, client, u.String()+gatewayPath); err != nil {
		return ""
	}
	f.Use(u.String())
	return u.String()
}

// ServerURL returns the URL of a configuration's server, without a slash at its end.
func ServerURL(config *rest.Config) (*url.URL, error) {
	u, _, err := rest.DefaultServerURL(config.Host, "", metav1.Unversioned, rest.IsConfigTransportTLS(*config))
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// HasHistory reports whether a server is a gateway with a history.
func HasHistory(ctx context.Context, client *http.Client, server *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	_, err := fetch(ctx, client, server.String()+historyPath)
	return err == nil
}

// HTTPClient returns a client for the server in use, with the credentials for it.
func (f *Flags) HTTPClient() (*http.Client, error) {
	if Plain(f.gateway) && !f.ownCredentials() { // a kubeconfig that cannot be read does not matter
		return &http.Client{Transport: f.probed(http.DefaultTransport)}, nil
	}
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}
