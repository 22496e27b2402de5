// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"cmp"
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// The keys of http.Server.TLSNextProto: of TLS, and of a connection without it that
// begins with HTTP/2's preface, which net/http also passes on.
const (
	overTLS     = "h2"
	unencrypted = "unencrypted_http2"
)

// A Server serves the HTTP/2 connections of an http.Server.
type Server struct {
	maxStreams     uint32
	maxHeaderBytes int
	idleTimeout    time.Duration
	writeTimeout   time.Duration
	log            *log.Logger

	mu       sync.Mutex // guards the fields below
	conns    map[*conn]struct{}
	draining bool
}

// Configure makes an http.Server serve HTTP/2 with this package, over TLS and, if its
// Protocols allow that, without it. It follows the server's Handler, IdleTimeout,
// MaxHeaderBytes, ErrorLog, and HTTP2's MaxConcurrentStreams (250 by default) and
// WriteByteTimeout (ten minutes by default), as they are now. The server's Shutdown and
// Close apply to these connections. Over TLS, writes are gathered if the listener below
// TLS is a [Listener].
func Configure(hs *http.Server) {
	s := &Server{
		maxStreams: 250, maxHeaderBytes: cmp.Or(hs.MaxHeaderBytes, http.DefaultMaxHeaderBytes),
		idleTimeout: cmp.Or(hs.IdleTimeout, hs.ReadTimeout), writeTimeout: 10 * time.Minute,
		log: hs.ErrorLog, conns: map[*conn]struct{}{},
	}
	if c := hs.HTTP2; c != nil {
		s.maxStreams = uint32(cmp.Or(c.MaxConcurrentStreams, 250))
		s.writeTimeout = cmp.Or(c.WriteByteTimeout, s.writeTimeout)
	}
	if hs.TLSNextProto == nil {
		hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	hs.TLSNextProto[overTLS] = func(_ *http.Server, conn *tls.Conn, h http.Handler) {
		state := conn.ConnectionState()
		s.serve(conn, &state, h)
	}
	if hs.Protocols != nil && hs.Protocols.UnencryptedHTTP2() {
		hs.TLSNextProto[unencrypted] = func(_ *http.Server, conn *tls.Conn, h http.Handler) {
			inner, ok := conn.NetConn().(interface{ UnencryptedNetConn() net.Conn })
			if ok {
				s.serve(inner.UnencryptedNetConn(), nil, h)
			}
		}
	}
	hs.RegisterOnShutdown(s.drain)
}

// serve serves a connection until it ends.
func (s *Server) serve(nc net.Conn, state *tls.ConnectionState, h http.Handler) {
	c := &conn{server: s, handler: h, base: context.Background(), net: nc, tls: state, remote: nc.RemoteAddr().String()}
	if b, ok := h.(interface{ BaseContext() context.Context }); ok {
		c.base = b.BaseContext()
	}
	below := nc
	if t, ok := nc.(*tls.Conn); ok {
		below = t.NetConn()
	}
	if g, ok := below.(*gatherConn); ok {
		below = g.Conn
		if state != nil {
			c.gather = g
		}
	}
	limitUnsent(below)
	if state != nil && !secure(state) {
		c.refuseInsecure()
		return
	}
	c.init()
	if !s.add(c) {
		nc.Close()
		return
	}
	defer s.remove(c)
	c.serve()
}

func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.conns[c] = struct{}{}
	}
	return !s.draining
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// drain ends all connections when their requests have ended.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for c := range s.conns {
		c.drain()
	}
}

func (s *Server) logf(format string, args ...any) {
	if s.log != nil {
		s.log.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}

// secure reports whether TLS is good enough for HTTP/2 (RFC 9113, 9.2).
func secure(state *tls.ConnectionState) bool {
	return state.Version >= tls.VersionTLS13 || state.Version == tls.VersionTLS12 && slices.Contains(ciphers, state.CipherSuite)
}

// ciphers are those of TLS 1.2 that HTTP/2 does not prohibit (RFC 9113, appendix A), of
// those that crypto/tls has.
var ciphers = []uint16{
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
}

// refuseInsecure ends a connection before it begins.
func (c *conn) refuseInsecure() {
	c.server.logf("http2: connection of %s: the cipher is not allowed with HTTP/2", c.remote)
	_ = c.net.SetDeadline(time.Now().Add(lingerTime))
	b := appendHeader(nil, 0, http2.FrameSettings, 0, 0)
	_, _ = c.net.Write(appendGoAway(b, 0, http2.ErrCodeInadequateSecurity, "the cipher is not allowed with HTTP/2"))
	c.net.Close()
}
