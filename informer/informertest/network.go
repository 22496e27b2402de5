// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
)

// A Network connects a server and its clients in one process without sockets. Every
// connection is a net.Pipe without a buffer, so the server waits for the reader. In a
// bubble of testing/synctest these waits are durable, so that time is virtual; the
// server and its network then belong to the bubble. URLs have the scheme http and any
// host.
type Network struct {
	server    *http.Server
	transport *http.Transport
	serving   sync.WaitGroup

	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

// NewNetwork serves a handler until Close is called.
func NewNetwork(handler http.Handler) *Network {
	n := &Network{conns: make(chan net.Conn), closed: make(chan struct{})}
	n.close = sync.OnceFunc(func() { close(n.closed) })
	n.server = &http.Server{Handler: handler}
	n.transport = &http.Transport{DialContext: n.Dial}
	n.serving.Go(func() { _ = n.server.Serve(pipeListener{n}) }) // ErrServerClosed
	return n
}

// Dial connects to the server, whatever the address. It is for http.Transport and
// rest.Config.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// URL returns a URL of the server. Its host has no meaning.
func (n *Network) URL() *url.URL { return &url.URL{Scheme: "http", Host: "api.test"} }

// Client returns a client whose requests reach the server.
func (n *Network) Client() *http.Client { return &http.Client{Transport: n.transport} }

// RoundTrip implements http.RoundTripper.
func (n *Network) RoundTrip(r *http.Request) (*http.Response, error) { return n.transport.RoundTrip(r) }

// Close breaks all connections and waits until the server has ended. Responses in
// progress end through the contexts of their requests.
func (n *Network) Close() {
	_ = n.server.Close()
	n.close()
	n.transport.CloseIdleConnections()
	n.serving.Wait()
}

// A pipeListener is the server's listener of a network.
type pipeListener struct{ *Network }

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error {
	l.close()
	return nil
}

func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
