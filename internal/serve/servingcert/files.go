// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// certCheckInterval is the minimum time between checks of the files. They are
// checked when a client connects, without a timer.
const certCheckInterval = time.Second

// Files are a certificate and its key in two files, which are read again when they change.
// All methods are safe for concurrent use.
type Files struct {
	certFile, keyFile string
	failed            Failed

	mu      sync.Mutex // guards the fields below
	cert    *tls.Certificate
	stamp   [2]fileStamp
	checked time.Time
}

// OpenFiles reads the files. What fails later is told to failed.
func OpenFiles(certFile, keyFile string, failed Failed) (*Files, error) {
	f := &Files{certFile: certFile, keyFile: keyFile, failed: failed}
	return f, f.load()
}

// A fileStamp shows whether a file has changed. The size helps if times are coarse.
type fileStamp struct {
	modified time.Time
	size     int64
}

// Certificate is for [tls.Config.GetCertificate].
func (f *Files) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	cert, due := f.cert, time.Since(f.checked) >= certCheckInterval
	if due {
		f.checked = time.Now()
	}
	f.mu.Unlock()
	if !due {
		return cert, nil
	}
	if err := f.load(); err != nil {
		// The files rarely change at the same instant; the old pair is used until
		// the new one is complete.
		f.failed("TLS certificate not reloaded, the previous one remains in use", "err", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cert, nil
}

// load reads the files if they have changed.
func (f *Files) load() error {
	var stamp [2]fileStamp
	for i, file := range []string{f.certFile, f.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		stamp[i] = fileStamp{info.ModTime(), info.Size()}
	}
	f.mu.Lock()
	same := f.cert != nil && stamp == f.stamp
	f.mu.Unlock()
	if same {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cert, f.stamp = &cert, stamp
	return nil
}
