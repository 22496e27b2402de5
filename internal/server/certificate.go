// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/servingcert"
)

// CertOptions select the certificate of the main listener.
type CertOptions struct {
	// File and KeyFile enable TLS. They are read again when they change. CAFile is their
	// CA, which is only published.
	File, KeyFile, CAFile string

	// In shared mode without File, the certificate is self-signed, and kept in Secret or,
	// if that is empty, in Dir. It is for Names besides localhost and, in Dir, the names
	// of this machine.
	Secret types.NamespacedName
	Dir    string
	Names  []string

	// CAConfigMap is the ConfigMap in which the CA is published; empty for none.
	CAConfigMap types.NamespacedName
}

// A certificate is that of the main listener.
type certificate struct {
	get func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ca  func() ([]byte, error) // what clients have to trust, as PEM
	// run renews or publishes it, until its context ends.
	run []func(context.Context)
}

// openCertificate returns the certificate of the main listener, nil without TLS.
func (s *server) openCertificate(ctx context.Context) (*certificate, error) {
	c, err := s.selectCertificate(ctx)
	if ref := s.opts.Cert.CAConfigMap; err == nil && c != nil && ref.Name != "" {
		client, err := s.coreClient()
		if err != nil {
			return nil, err
		}
		if _, err := c.ca(); err != nil {
			return nil, fmt.Errorf("the CA for --ca-configmap: %w", err)
		}
		c.run = append(c.run, func(ctx context.Context) { servingcert.PublishCA(ctx, client, ref, c.ca, s.log) })
	}
	return c, err
}

func (s *server) selectCertificate(ctx context.Context) (*certificate, error) {
	opts := s.opts.Cert
	switch {
	case opts.File != "" && opts.KeyFile != "":
		return s.certificateFiles(opts.File, opts.KeyFile, opts.CAFile)
	case opts.File != "" || opts.KeyFile != "":
		return nil, errors.New("--tls-cert-file and --tls-private-key-file belong together: one is missing")
	case s.opts.Gateway.Shared == nil:
		return nil, nil
	case opts.Secret.Name != "":
		names, err := servingcert.SharedNames(opts.Names)
		if err != nil {
			return nil, err
		}
		client, err := s.coreClient()
		if err != nil {
			return nil, err
		}
		secret, err := servingcert.OpenSecret(ctx, client, opts.Secret, names, s.log)
		if err != nil {
			return nil, err
		}
		return &certificate{get: secret.Certificate, ca: secret.CA, run: []func(context.Context){secret.Run}}, nil
	}
	names, err := servingcert.Names(s.opts.Address, opts.Names)
	if err != nil {
		return nil, err
	}
	crt, key, err := servingcert.EnsureDirectory(opts.Dir, names, s.log)
	if err != nil {
		return nil, err
	}
	c, err := s.certificateFiles(crt, key, filepath.Join(opts.Dir, servingcert.CAFile))
	if err == nil {
		c.run = append(c.run, func(ctx context.Context) {
			servingcert.RenewDirectory(ctx, opts.Dir, names, servingcert.RenewInterval, s.log)
		})
	}
	return c, err
}

func (s *server) certificateFiles(crt, key, ca string) (*certificate, error) {
	files, err := servingcert.OpenFiles(crt, key, s.log)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	return &certificate{get: files.Certificate, ca: func() ([]byte, error) { return os.ReadFile(ca) }}, nil
}

// coreClient returns a client that acts with the gateway's identity.
func (s *server) coreClient() (*corev1client.CoreV1Client, error) {
	return corev1client.NewForConfigAndClient(s.up.Client())
}

// tlsConfig returns the configuration of the main listener for a certificate, nil without
// one. Shared mode asks for client certificates.
func (s *server) tlsConfig(c *certificate) *tls.Config {
	if c == nil {
		return nil
	}
	config := newTLSConfig(c.get)
	if s.opts.Gateway.Shared != nil {
		requestClientCerts(config, func() *x509.CertPool {
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(s.gw.ClientCAs())
			return pool // empty while they are not known
		})
	}
	return config
}
