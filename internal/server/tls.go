// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
		MinVersion:         tls.VersionTLS12,
		GetCertificate:     k.get,
		GetConfigForClient: gatherHTTP2,
		// Small initial records would split an event into four, each with its own
		// system call.
		DynamicRecordSizingDisabled: true,
	}, nil
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
