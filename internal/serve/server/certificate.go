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

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/serve/servingcert"
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

// openCertificate returns the certificate of the main listener, nil without TLS, and
// registers its metrics.
func (s *server) openCertificate(ctx context.Context) (*certificate, error) {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "watchkeeper_certificate_failures_total",
		Help: "How often the certificate of the main listener could not be read, checked or renewed (load), or its CA not be published (publish).",
	}, []string{"step"})
	failed := func(step string) servingcert.Failed {
		count := failures.WithLabelValues(step)
		return func(msg string, args ...any) {
			count.Inc()
			s.log.Error(msg, args...)
		}
	}
	c, err := s.selectCertificate(ctx, failed("load"))
	if err != nil || c == nil {
		return nil, err
	}
	s.registry.MustRegister(failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "watchkeeper_certificate_expiration_timestamp_seconds",
		Help: "When the certificate of the main listener expires.",
	}, func() float64 {
		if crt, err := c.get(nil); err == nil && crt.Leaf != nil {
			return float64(crt.Leaf.NotAfter.Unix())
		}
		return 0
	}))
	if ref := s.opts.Cert.CAConfigMap; ref.Name != "" {
		client, err := s.coreClient()
		if err != nil {
			return nil, err
		}
		if _, err := c.ca(); err != nil {
			return nil, fmt.Errorf("the CA for --ca-configmap: %w", err)
		}
		publishing := failed("publish")
		c.run = append(c.run, func(ctx context.Context) { servingcert.PublishCA(ctx, client, ref, c.ca, publishing) })
	}
	return c, nil
}

func (s *server) selectCertificate(ctx context.Context, failed servingcert.Failed) (*certificate, error) {
	opts := s.opts.Cert
	switch {
	case opts.File != "" && opts.KeyFile != "":
		return s.certificateFiles(opts.File, opts.KeyFile, opts.CAFile, failed)
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
		return &certificate{get: secret.Certificate, ca: secret.CA, run: []func(context.Context){func(ctx context.Context) { secret.Run(ctx, failed) }}}, nil
	}
	names, err := servingcert.Names(s.opts.Address, opts.Names)
	if err != nil {
		return nil, err
	}
	crt, key, err := servingcert.EnsureDirectory(opts.Dir, names, s.log)
	if err != nil {
		return nil, err
	}
	c, err := s.certificateFiles(crt, key, filepath.Join(opts.Dir, servingcert.CAFile), failed)
	if err == nil {
		c.run = append(c.run, func(ctx context.Context) {
			servingcert.RenewDirectory(ctx, opts.Dir, names, servingcert.RenewInterval, s.log, failed)
		})
	}
	return c, err
}

func (s *server) certificateFiles(crt, key, ca string, failed servingcert.Failed) (*certificate, error) {
	files, err := servingcert.OpenFiles(crt, key, failed)
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
