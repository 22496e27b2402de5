// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// An Address is where a server listens.
type Address struct {
	URL string
	CA  []byte // PEM; nil without TLS
}

// Listen serves on two free ports of the loopback interface: HTTP/1.1 without
// TLS, and HTTP/2 with TLS. The returned function ends both.
func Listen(handler http.Handler) (plain, secure Address, stop func(), err error) {
	certificate, ca, err := SelfSigned()
	if err != nil {
		return plain, secure, nil, err
	}
	var http1, http2 http.Protocols
	http1.SetHTTP1(true)
	http2.SetHTTP2(true)
	one := &http.Server{Handler: handler, Protocols: &http1}
	two := &http.Server{Handler: handler, Protocols: &http2, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	a, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return plain, secure, nil, err
	}
	b, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.Close()
		return plain, secure, nil, err
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = one.Serve(a) })            // ErrServerClosed
	serving.Go(func() { _ = two.ServeTLS(b, "", "") }) // ErrServerClosed
	stop = func() {
		one.Close()
		two.Close()
		serving.Wait()
	}
	return Address{URL: "http://" + a.Addr().String()}, Address{"https://" + b.Addr().String(), ca}, stop, nil
}

// SelfSigned returns a certificate for the loopback address, and the same in PEM for
// clients that have to trust it.
func SelfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 7),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
