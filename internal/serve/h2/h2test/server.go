// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
)

// A Server is an http.Server on pipes in memory. What a client has written is what the
// server has read, because no kernel buffers in between. So a test can count the bytes
// that a server takes, and run in a bubble of testing/synctest.
type Server struct {
	HTTP     *http.Server
	listener *pipeListener
	serving  sync.WaitGroup
}

// Start serves until the test ends, which fails if a goroutine of the server remains.
// With TLS if the server has a TLSConfig. wrap, if not nil, is applied to the listener.
func Start(t testing.TB, hs *http.Server, wrap func(net.Listener) net.Listener) *Server {
	t.Helper()
	s := &Server{HTTP: hs, listener: &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}}
	listener := net.Listener(s.listener)
	if wrap != nil {
		listener = wrap(listener)
	}
	s.serving.Go(func() {
		var err error
		if hs.TLSConfig != nil {
			err = hs.ServeTLS(listener, "", "")
		} else {
			err = hs.Serve(listener)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		hs.Close()
		s.serving.Wait()
	})
	return s
}

// Connect returns a new connection, with TLS if the server has it.
func (s *Server) Connect(t testing.TB) net.Conn {
	t.Helper()
	conn := s.Pipe(t)
	if s.HTTP.TLSConfig != nil {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	}
	return conn
}

// Pipe returns the client's end of a new connection, before TLS.
func (s *Server) Pipe(t testing.TB) net.Conn {
	t.Helper()
	conn, err := s.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Transport returns a transport of net/http that uses HTTP/2 only.
func (s *Server) Transport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols:       &protocols,
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
}

func (s *Server) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case s.listener.conns <- server:
		return client, nil
	case <-s.listener.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
