// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig has sources for informers that are reached as kubectl
// reaches them, or a program in the cluster: with all of client-go's ways to
// authenticate.
package kubeconfig

import (
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/watchkeeper/watchkeeper/informer"
)

// Default returns the API server of the kubeconfig that kubectl would take
// ($KUBECONFIG, or ~/.kube/config), and where there is none, that of the
// cluster the program runs in.
func Default() (*informer.Source, error) { return fromRules("", "") }

// FromFile returns the API server of a context of a kubeconfig file; "" is its
// current context.
func FromFile(path, context string) (*informer.Source, error) { return fromRules(path, context) }

func fromRules(path, context string) (*informer.Source, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return FromConfig(config)
}

// InCluster returns the API server of the cluster that the program runs in, to
// which its service account authenticates.
func InCluster() (*informer.Source, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return FromConfig(config)
}

// FromConfig returns the API server of a client-go configuration. Its rate
// limits do not count: an informer has few requests, and backs off by itself.
func FromConfig(config *rest.Config) (*informer.Source, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	t, err := newTransport(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return informer.NewSource(base, t), nil
}

// A transport has connections of its own: client-go would share one with all
// clients of the same configuration.
type transport struct {
	http.RoundTripper
	config *rest.Config
}

func newTransport(config *rest.Config) (*transport, error) {
	config = rest.CopyConfig(config)
	if config.Dial == nil {
		// One that has a dialer is not shared.
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	t, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	if config.Transport == nil {
		limit(t)
	}
	return &transport{t, config}, nil
}

// limit has no more of a list wait in memory than of [informer.FromURL]'s. It is
// for a transport that has not been used.
func limit(t http.RoundTripper) {
	switch t := t.(type) {
	case *http.Transport:
		t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 2 << 20}
	case utilnet.RoundTripperWrapper:
		limit(t.WrappedRoundTripper())
	}
}

// Fresh implements informer.Freshener.
func (t *transport) Fresh() (http.RoundTripper, error) { return newTransport(t.config) }

// CloseIdleConnections lets go of connections that are not in use.
func (t *transport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.RoundTripper) }
