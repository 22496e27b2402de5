// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// certCheckInterval is the minimum time between checks of the files. They are
// checked when a client connects, without a timer.
const certCheckInterval = time.Second

// newTLSConfig returns nil when neither file is given.
func newTLSConfig(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, errors.New("--tls-cert-file and --tls-private-key-file belong together: one is missing")
	}
	k := &keyPair{certFile: certFile, keyFile: keyFile, log: log}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: k.get,
		// Small initial records would split an event into four, each with its own
		// system call.
		DynamicRecordSizingDisabled: true,
	}, nil
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

// A keyPair is a certificate that is reloaded when its files change.
type keyPair struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex // guards the fields below
	cert    *tls.Certificate
	stamp   [2]fileStamp
	checked time.Time
}

// A fileStamp shows whether a file has changed. The size helps if times are coarse.
type fileStamp struct {
	modified time.Time
	size     int64
}

func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	cert, due := k.cert, time.Since(k.checked) >= certCheckInterval
	if due {
		k.checked = time.Now()
	}
	k.mu.Unlock()
	if !due {
		return cert, nil
	}
	if err := k.load(); err != nil {
		// The files rarely change at the same instant; the old pair is used until
		// the new one is complete.
		k.log.Warn("TLS certificate not reloaded, the previous one remains in use", "err", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cert, nil
}

// load reads the files if they have changed.
func (k *keyPair) load() error {
	var stamp [2]fileStamp
	for i, file := range []string{k.certFile, k.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		stamp[i] = fileStamp{info.ModTime(), info.Size()}
	}
	k.mu.Lock()
	same := k.cert != nil && stamp == k.stamp
	k.mu.Unlock()
	if same {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cert, k.stamp = &cert, stamp
	return nil
}
