// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ClientCert returns a new certificate, as PEM, of a user in groups. It is signed by the
// CA of the cluster's clients, and valid for an hour.
func (c *Cluster) ClientCert(user string, groups ...string) (cert, key []byte, err error) {
	ca, err := tls.LoadX509KeyPair(c.pki("ca.crt"), c.pki("ca.key"))
	if err != nil {
		return nil, nil, err
	}
	return issue(&ca, pkix.Name{CommonName: user, Organization: groups})
}

// ForeignCert returns a certificate like ClientCert's, signed by a CA that the cluster
// does not trust.
func ForeignCert(user string, groups ...string) (cert, key []byte, err error) {
	return issue(nil, pkix.Name{CommonName: user, Organization: groups})
}

// issue signs a client certificate with the key of the CA, or with its own if ca is nil.
func issue(ca *tls.Certificate, subject pkix.Name) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour), // the clock may be set back
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}

// FrontProxyCert returns the certificate, as PEM, of a client that may name its user in
// X-Remote-User, X-Remote-Group and X-Remote-Extra- headers.
func (c *Cluster) FrontProxyCert() (cert, key []byte, err error) {
	if cert, err = os.ReadFile(c.pki("front-proxy.crt")); err == nil {
		key, err = os.ReadFile(c.pki("front-proxy.key"))
	}
	return cert, key, err
}

// ServerCA returns the CA of the API servers' certificates, as PEM.
func (c *Cluster) ServerCA() ([]byte, error) { return os.ReadFile(c.pki("ca.crt")) }

func (c *Cluster) pki(name string) string { return filepath.Join(c.Dir, "pki", name) }

// Token requests a token of a ServiceAccount. An expiration of 0 is the API server's
// default, and it refuses less than ten minutes; without audiences, the token is for the
// API server.
func (c *Cluster) Token(ctx context.Context, namespace, serviceAccount string, expiration time.Duration, audiences ...string) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	if expiration != 0 {
		seconds := int64(expiration.Seconds())
		request.Spec.ExpirationSeconds = &seconds
	}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}
