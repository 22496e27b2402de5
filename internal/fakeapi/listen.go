// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
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

// An Address is where a server listens.
type Address struct {
	URL string
	CA  []byte // PEM; nil without TLS
}

// Listen serves on two free ports of the loopback interface: HTTP/1.1 without
// TLS, and HTTP/2 with TLS. The returned function ends both.
func Listen(handler http.Handler) (plain, secure Address, stop func(), err error) {
	certificate, ca, err := SelfSigned()
	if err != nil {
		return plain, secure, nil, err
	}
	var http1, http2 http.Protocols
	http1.SetHTTP1(true)
	http2.SetHTTP2(true)
	one := &http.Server{Handler: handler, Protocols: &http1}
	two := &http.Server{Handler: handler, Protocols: &http2, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	a, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return plain, secure, nil, err
	}
	b, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.Close()
		return plain, secure, nil, err
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = one.Serve(a) })            // ErrServerClosed
	serving.Go(func() { _ = two.ServeTLS(b, "", "") }) // ErrServerClosed
	stop = func() {
		one.Close()
		two.Close()
		serving.Wait()
	}
	return Address{URL: "http://" + a.Addr().String()}, Address{"https://" + b.Addr().String(), ca}, stop, nil
}

// SelfSigned returns a certificate for the loopback address, and the same in PEM for
// clients that have to trust it.
func SelfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 7),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
