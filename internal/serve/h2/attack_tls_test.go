// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// keyPair is a self-signed certificate.
func keyPair(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour * 24 * 365 * 100),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}
}

// secured makes a server have TLS. Its minimum is lower than HTTP/2 allows, so that it is
// HTTP/2 that refuses.
func secured(t *testing.T) func(*http.Server) {
	cert := keyPair(t, "watchkeeper.test")
	return func(hs *http.Server) {
		hs.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, ClientAuth: tls.RequestClientCert, CipherSuites: allCiphers()}
	}
}

func allCiphers() (all []uint16) {
	for _, c := range tls.CipherSuites() {
		all = append(all, c.ID)
	}
	for _, c := range tls.InsecureCipherSuites() {
		all = append(all, c.ID)
	}
	return all
}

// TestTLS connects with versions, ciphers and protocols that are good enough for HTTP/2
// (RFC 9113, section 9.2), or not. Those that are not are refused with
// INADEQUATE_SECURITY, or by the handshake, before a request.
func TestTLS(t *testing.T) {
	for name, one := range map[string]struct {
		config *tls.Config
		served bool
	}{
		"TLS 1.3": {&tls.Config{MinVersion: tls.VersionTLS13}, true},
		"TLS 1.2": {&tls.Config{MaxVersion: tls.VersionTLS12}, true},
		"TLS 1.1": {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
		"CBC":     {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}}, false},
		"RC4":     {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA}}, false},
		"GCM":     {&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}, true},
	} {
		bubble(t, name, func(t *testing.T) {
			var handlers gauge
			s := start(t, handlers.count(hello), secured(t))
			config := one.config.Clone()
			config.InsecureSkipVerify, config.NextProtos = true, []string{"h2"}
			if config.CipherSuites == nil && config.MaxVersion < tls.VersionTLS12 {
				config.CipherSuites = allCiphers()
			}
			conn := tls.Client(s.Pipe(t), config)
			if err := conn.Handshake(); err != nil {
				if one.served {
					t.Fatal(err)
				}
				conn.NetConn().Close()
				return
			}
			if one.served {
				c := h2test.New(t, conn)
				if a := c.Exchange("/"); string(a.Body) != "hello" {
					t.Errorf("%v", a)
				}
				return
			}
			c := h2test.Bare(t, conn)
			c.ExpectSettings(-1)
			c.Listen()
			_ = c.Write([]byte(http2.ClientPreface)) // fails if the server has disconnected
			c.Wait("the end of the connection", func(s *h2test.State) bool { return s.Closed })
			c.Look(func(s *h2test.State) {
				if s.GoAwayCode != http2.ErrCodeInadequateSecurity {
					t.Errorf("GOAWAY %v, %v", s.GoAway, s.GoAwayCode)
				}
			})
			if seen, _ := handlers.total(); seen != 0 {
				t.Error("a handler has seen a request")
			}
		})
	}
}

// TestNoALPN begins HTTP/2 on a connection with TLS that has not negotiated it. The server
// takes it for HTTP/1.1: net/http gives a handler the first line as a request, and closes.
func TestNoALPN(t *testing.T) {
	for name, protocols := range map[string][]string{"none": nil, "HTTP/1.1": {"http/1.1"}} {
		bubble(t, name, func(t *testing.T) {
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != "PRI" || r.TLS.NegotiatedProtocol == "h2" {
					t.Errorf("a handler has seen %s %s", r.Method, r.RequestURI)
				}
				http.NotFound(w, r)
			}), secured(t))
			conn := tls.Client(s.Pipe(t), &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
			defer conn.NetConn().Close()
			go func() { _, _ = io.WriteString(conn, http2.ClientPreface) }()
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "HTTP/1.1 ") {
				t.Errorf("%q, %v", line, err)
			}
		})
	}
}

// TestPeerCertificates shows the handler the client's certificate, as net/http does.
func TestPeerCertificates(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.TLS == nil || len(r.TLS.PeerCertificates) != 1 || r.TLS.NegotiatedProtocol != "h2" || r.TLS.Version != tls.VersionTLS13 {
				t.Errorf("%+v", r.TLS)
				return
			}
			_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
		}), secured(t))
		conn := tls.Client(s.Pipe(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{keyPair(t, "client.test")}})
		c := h2test.New(t, conn)
		for range 3 {
			if a := c.Exchange("/"); string(a.Body) != "client.test" {
				t.Errorf("%v %q", a, a.Body)
			}
		}
	})
}
