// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig returns sources for informers from kubeconfig files and
// service accounts, with all authentication methods of client-go.
package kubeconfig

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clienttransport "k8s.io/client-go/transport"

	"github.com/watchkeeper/watchkeeper/informer"
)

// Default returns the API server of the kubeconfig that kubectl uses ($KUBECONFIG,
// or ~/.kube/config). Without one, it returns that of the cluster in which the
// program runs. It fails if there is neither.
func Default() (*informer.Source, error) { return fromRules("", "") }

// FromFile returns the API server of a context of a kubeconfig file. The context
// "" is the file's current context. It fails if either does not exist.
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

// InCluster returns the API server of the cluster in which the program runs,
// authenticated by the Pod's service account. Outside of a cluster, its error
// wraps rest.ErrNotInCluster.
func InCluster() (*informer.Source, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return FromConfig(config)
}

// FromConfig returns the API server of a client-go configuration. Its rate limits
// are not used: an informer sends few requests and has its own backoff. As with client-go,
// a user and password in the URL of its Host are preferred to a token or those of the
// configuration.
func FromConfig(config *rest.Config) (*informer.Source, error) {
	if config == nil {
		return nil, errors.New("kubeconfig: config is nil")
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	t, err := newTransport(config, base.User)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	base.User = nil // errors have the URL
	return informer.NewSource(base, t), nil
}

// A transport is an [informer.Freshener]. client-go shares one transport among
// all clients of a configuration; this one has its own connections.
type transport struct {
	http.RoundTripper
	config *rest.Config
	user   *url.Userinfo // of the URL; nil for none
}

func newTransport(config *rest.Config, user *url.Userinfo) (*transport, error) {
	config = rest.CopyConfig(config)
	if config.Dial == nil {
		// client-go does not share a transport that has a dialer.
		config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	t, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	if config.Transport == nil {
		limitReceiveBuffer(t)
	}
	if user != nil {
		// Around the others, which do not change the header. http.Client does the same.
		password, _ := user.Password()
		t = clienttransport.NewBasicAuthRoundTripper(user.Username(), password, t)
	}
	return &transport{t, config, user}, nil
}

// limitReceiveBuffer sets the receive buffer that [informer.FromURL] has, so that
// little of a list is in memory before it is read. t must not have been used.
func limitReceiveBuffer(t http.RoundTripper) {
	switch t := t.(type) {
	case *http.Transport:
		t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 2 << 20}
	case utilnet.RoundTripperWrapper:
		limitReceiveBuffer(t.WrappedRoundTripper())
	}
}

// Fresh implements informer.Freshener.
func (t *transport) Fresh() (http.RoundTripper, error) { return newTransport(t.config, t.user) }

// CloseIdleConnections closes the connections that are not in use.
func (t *transport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.RoundTripper) }
