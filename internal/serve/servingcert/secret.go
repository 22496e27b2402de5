// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// caKeyFile is where a Secret has the key of the CA, besides the other files.
const caKeyFile = "ca.key"

const (
	// secretInterval is the time between the reads of a Secret.
	secretInterval = time.Minute
	// firstWait and maxWait limit the pause after a failed read at the start.
	firstWait, maxWait = time.Second, 15 * time.Second
	// maxForbidden is how long a refusal is not believed: an API server that starts, or has
	// just been told of a Role, refuses what it allows later.
	maxForbidden = 20 * time.Second
	callTimeout  = 10 * time.Second
	// maxConflicts is how often other replicas may write a Secret first.
	maxConflicts = 10
)

// A Secret is a self-signed certificate in a Secret of the cluster, which several replicas
// serve. The first one that finds none writes it: ca.crt for the clients, ca.key, tls.crt
// and tls.key. The certificate is renewed 30 days before it expires; the CA, which is
// valid for ten years, stays. All methods are safe for concurrent use.
type Secret struct {
	api   corev1client.SecretsGetter
	ref   types.NamespacedName
	names []string
	log   *slog.Logger

	current atomic.Pointer[secretPair]
}

type secretPair struct {
	cert *tls.Certificate
	ca   []byte
}

// OpenSecret reads the Secret, or writes it, for names. It waits for an API server that
// does not answer, until ctx ends.
func OpenSecret(ctx context.Context, api corev1client.SecretsGetter, ref types.NamespacedName, names []string, log *slog.Logger) (*Secret, error) {
	s := &Secret{api: api, ref: ref, names: names, log: log}
	began := time.Now()
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := s.refresh(ctx)
		if err == nil {
			return s, nil
		}
		err = fmt.Errorf("--cert-secret %s: %w", ref, err)
		if isFinal(err) && !(apierrors.IsForbidden(err) && time.Since(began) < maxForbidden) {
			return nil, err
		}
		log.Error("no TLS certificate yet; trying again", "err", err, "after", wait)
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// isFinal reports whether an error lasts until somebody changes something: the API server
// has answered, or the Secret has other data.
func isFinal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return errors.Is(err, errForeign)
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsConflict(err) && !apierrors.IsUnauthorized(err)
}

// Certificate is for [tls.Config.GetCertificate].
func (s *Secret) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.current.Load().cert, nil
}

// CA returns the certificates that clients have to trust, as PEM.
func (s *Secret) CA() ([]byte, error) { return s.current.Load().ca, nil }

// Run renews the certificate, and takes over what other replicas have written, until ctx
// ends. What fails is told to failed.
func (s *Secret) Run(ctx context.Context, failed Failed) {
	ticker := time.NewTicker(secretInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
				failed("self-signed TLS certificate not checked; the previous one remains in use", "secret", s.ref, "err", err,
					"until", s.current.Load().cert.Leaf.NotAfter.Format(time.RFC3339))
			}
		}
	}
}

// refresh reads the Secret, writes what it lacks, and uses it.
func (s *Secret) refresh(ctx context.Context) (err error) {
	for range maxConflicts {
		var again bool
		if again, err = s.attempt(ctx); !again {
			break
		}
	}
	return err
}

// attempt is refresh without a further try, which is useful if another replica was first.
func (s *Secret) attempt(ctx context.Context) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	secrets := s.api.Secrets(s.ref.Namespace)
	secret, err := secrets.Get(ctx, s.ref.Name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.ref.Name}, Type: corev1.SecretTypeOpaque}
	} else if err != nil {
		return false, withHint(err, "the gateway needs get and update on it")
	}
	data, reason, err := renewed(secret.Data, s.names)
	if err != nil {
		return false, err
	}
	if reason != "" {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		maps.Copy(secret.Data, data)
		if missing {
			_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
		} else {
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		}
		switch {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
			return true, err
		case missing && err != nil:
			return false, withHint(err, "create an empty Secret, which the gateway may get and update")
		case err != nil:
			return false, withHint(err, "the gateway needs get and update on it")
		}
		s.log.Info("made a self-signed TLS certificate; clients have to trust its CA", "reason", reason, "secret", s.ref, "names", s.names)
	}
	pair, err := tls.X509KeyPair(data[certFile], data[keyFile])
	if err != nil {
		return false, err
	}
	s.current.Store(&secretPair{cert: &pair, ca: data[caFile]})
	return false, nil
}

// withHint says what to do about a refusal. Other errors stay as they are.
func withHint(err error, hint string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}
