// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
)

// newTLSConfig serves the certificate that get returns.
func newTLSConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: get,
		// Small initial records would split an event into four, each with its own
		// system call.
		DynamicRecordSizingDisabled: true,
	}
}

// requestClientCerts makes a config of newTLSConfig ask clients for a certificate. TLS
// does not verify it: that happens for each request, so that one that is expired, or of
// a CA that is no longer trusted, ends no connection that has other credentials.
//
// clientCAs returns the current CAs, of clients and of front proxies. Their names are
// sent as a hint, without which a browser would offer its user every certificate there
// is; many clients send none that does not fit it. While there are no CAs (nil or
// empty), no certificate is requested.
func requestClientCerts(config *tls.Config, clientCAs func() *x509.CertPool) {
	// GetConfigForClient replaces the config that net/http has completed.
	config.NextProtos = []string{"h2", "http/1.1"}
	r := &clientCertRequest{base: config.Clone()}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return r.configFor(clientCAs()), nil
	}
}

// A clientCertRequest has the config of new connections, which depends on the CAs.
type clientCertRequest struct {
	base *tls.Config // its session ticket keys are those of every config

	mu     sync.Mutex // guards the fields below
	pool   *x509.CertPool
	config *tls.Config // for pool; nil before the first connection
}

func (r *clientCertRequest) configFor(pool *x509.CertPool) *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.config != nil && (pool == r.pool || pool != nil && pool.Equal(r.pool)) {
		r.pool = pool
		return r.config
	}
	c := r.base.Clone()
	c.GetConfigForClient = nil
	if pool != nil && !pool.Equal(x509.NewCertPool()) {
		c.ClientAuth, c.ClientCAs = tls.RequestClientCert, pool
	}
	// A client chooses its certificate by the hint, and only in a full handshake. If
	// sessions outlived the hint, it could remain without one for as long as a week.
	mark := []byte(rand.Text())
	c.WrapSession = func(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
		session.Extra = append(session.Extra, mark)
		return r.base.EncryptTicket(state, session)
	}
	c.UnwrapSession = func(ticket []byte, state tls.ConnectionState) (*tls.SessionState, error) {
		session, err := r.base.DecryptTicket(ticket, state)
		if err != nil || session == nil || !slices.ContainsFunc(session.Extra, func(b []byte) bool { return bytes.Equal(b, mark) }) {
			return nil, err // a full handshake
		}
		return session, nil
	}
	r.pool, r.config = pool, c
	return c
}
