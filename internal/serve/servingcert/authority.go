// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// leafValidity is how long a certificate is valid that an authority issues. Its own is
	// valid for ten years.
	leafValidity = 365 * 24 * time.Hour
	// caOverlap is how long a new CA is in ca.crt before a certificate is one of it: the
	// copies of ca.crt that clients have may be as old.
	caOverlap = 24 * time.Hour
	// clockSkew is by how much a client's clock may be slow.
	clockSkew = time.Hour
)

// An authority is a CA with its key. The certificates that it issues can be renewed
// without a change for the clients.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: fmt.Sprintf("watchkeeper-ca-%d", now.Unix()), NotBefore: now.Add(-clockSkew)}, key)
	if err != nil {
		return nil, err
	}
	return &authority{cert: ca, key: key}, nil
}

// parseAuthority returns the authority of a key. Its certificate is one of cas.
func parseAuthority(cas, key []byte) (*authority, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", caKeyFile, err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a key of type %T", caKeyFile, parsed)
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return nil, fmt.Errorf("%s: a key of type %T", caKeyFile, parsed)
	}
	certs, err := cert.ParseCertsPEM(cas)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", caFile, err)
	}
	for _, c := range certs {
		if c.IsCA && public.Equal(c.PublicKey) {
			return &authority{cert: c, key: signer}, nil
		}
	}
	return nil, errors.New(caKeyFile + " is not the key of " + caFile)
}

// pem returns the CA's certificate and key.
func (a *authority) pem() (crt, key []byte, err error) {
	if crt, err = cert.EncodeCertificates(a.cert); err == nil {
		key, err = keyutil.MarshalPrivateKeyToPEM(a.key)
	}
	return crt, key, err
}

// issue returns a new server certificate for names, followed by the CA's, and its key.
func (a *authority) issue(names []string) (crt, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "watchkeeper"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(leafValidity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	if crt, err = cert.EncodeCertificates(leaf, a.cert); err == nil {
		key, err = keyutil.MarshalPrivateKeyToPEM(private)
	}
	return crt, key, err
}

// errForeign says that a Secret has data that the gateway must not replace.
var errForeign = errors.New("its data are not from the gateway")

// renewed returns the data of a Secret with a certificate that can be used for names, and
// why it was made; the reason is empty if that in data can be used. The CA stays as long
// as it is valid. When another one follows, the certificate of the first stays for
// [caOverlap]. An error means that the data must not be replaced.
func renewed(data map[string][]byte, names []string) (next map[string][]byte, reason string, err error) {
	size := 0
	for _, file := range []string{caFile, caKeyFile, certFile, keyFile} {
		size += len(data[file])
	}
	var a *authority
	var cas []byte
	if size > 0 {
		if a, err = parseAuthority(data[caFile], data[caKeyFile]); err != nil {
			return nil, "", fmt.Errorf("%w (%w) and are not replaced: for your own certificate use --tls-cert-file and --tls-private-key-file; for a self-signed one use another Secret, or remove the data", errForeign, err)
		}
		cas = data[caFile]
	} else {
		reason = "there is no certificate"
	}
	if a != nil && time.Until(a.cert.NotAfter) < minValidity {
		reason, a = "the CA is valid only until "+a.cert.NotAfter.Format(time.RFC3339), nil
	}
	crt, key := data[certFile], data[keyFile]
	keep := usable(crt, key, cas, names)
	if a == nil {
		if a, err = newAuthority(); err != nil {
			return nil, "", err
		}
	} else if keep && time.Since(a.cert.NotBefore) < clockSkew+caOverlap {
		return data, "", nil
	} else {
		var also []string
		if reason, also = a.inspect(crt, key, names); reason == "" {
			return data, "", nil
		}
		names, keep = mergeNames(names, also), false
	}
	if !keep {
		if crt, key, err = a.issue(names); err != nil {
			return nil, "", err
		}
	}
	ca, caKey, err := a.pem()
	if err != nil {
		return nil, "", err
	}
	if !bytes.Contains(cas, ca) { // a replica may still serve a certificate of the CA before
		cas = append(ca, cas...)
	}
	return map[string][]byte{caFile: cas, caKeyFile: caKey, certFile: crt, keyFile: key}, reason, nil
}

// usable reports whether clients that trust cas accept the certificate for names, and will for
// [caOverlap].
func usable(crt, key, cas []byte, names []string) bool {
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil || time.Until(pair.Leaf.NotAfter) < caOverlap {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cas)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots})
	missing, _ := missingName(pair.Leaf, names)
	return err == nil && missing == ""
}

// inspect returns why the certificate cannot be used for names, and, if it lacks some of
// them, those that it has.
func (a *authority) inspect(crt, key []byte, names []string) (reason string, also []string) {
	pair, err := tls.X509KeyPair(crt, key)
	switch {
	case err != nil:
		return certFile + " or " + keyFile + " is missing or damaged", nil
	case pair.Leaf.CheckSignatureFrom(a.cert) != nil:
		return certFile + " is not signed by the CA", nil
	}
	if reason := notValid(pair.Leaf); reason != "" {
		return reason, nil
	}
	return missingName(pair.Leaf, names)
}
