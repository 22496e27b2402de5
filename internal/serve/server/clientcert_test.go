// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/watchkeeper/watchkeeper/internal/serve/servingcert"
)

// A clientCA signs the certificates of clients.
type clientCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newClientCA(t *testing.T, name string) *clientCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &clientCA{c, key}
}

func (ca *clientCA) sign(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// poolOf returns a new pool.
func poolOf(cas ...*clientCA) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, ca := range cas {
		pool.AddCert(ca.cert)
	}
	return pool
}

// A certServer answers with what it knows of the client.
type certServer struct {
	url  string
	pool atomic.Pointer[x509.CertPool] // clients' CAs
	root *x509.CertPool                // the server's CA
}

func newCertServer(t *testing.T) *certServer {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	crt, key, err := servingcert.EnsureDirectory(dir, []string{"127.0.0.1"}, log)
	if err != nil {
		t.Fatal(err)
	}
	files, err := servingcert.OpenFiles(crt, key, log.Error)
	if err != nil {
		t.Fatal(err)
	}
	config := newTLSConfig(files.Certificate)
	ca, err := os.ReadFile(filepath.Join(dir, servingcert.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	s := &certServer{root: x509.NewCertPool()}
	s.root.AppendCertsFromPEM(ca)
	requestClientCerts(config, s.pool.Load)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "https://" + listener.Addr().String()
	web := (&server{log: log}).newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := "none"
		if len(r.TLS.PeerCertificates) > 0 {
			client = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		fmt.Fprintf(w, "%s %s resumed=%t verified=%t", r.Proto, client, r.TLS.DidResume, len(r.TLS.VerifiedChains) > 0)
	}))
	web.TLSConfig = config
	served := make(chan error)
	go func() { served <- web.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		web.Close()
		<-served
	})
	return s
}

// A certClient makes each request on a new connection.
type certClient struct {
	cert     *tls.Certificate // nil: none
	sessions tls.ClientSessionCache
	version  uint16
	http1    bool

	asked *tls.CertificateRequestInfo // of the last request; nil if the server did not ask
}

func (c *certClient) get(t *testing.T, s *certServer) string {
	t.Helper()
	c.asked = nil
	transport := &http.Transport{ForceAttemptHTTP2: !c.http1, TLSClientConfig: &tls.Config{
		RootCAs:            s.root,
		MaxVersion:         c.version,
		ClientSessionCache: c.sessions,
		GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c.asked = info
			if c.cert == nil || info.SupportsCertificate(c.cert) != nil {
				return &tls.Certificate{}, nil // as Go and browsers do
			}
			return c.cert, nil
		},
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// hint returns the CAs that the server named in the last request.
func (c *certClient) hint() (names [][]byte) {
	if c.asked != nil {
		names = c.asked.AcceptableCAs
	}
	return names
}

func TestClientCertificates(t *testing.T) {
	s := newCertServer(t)
	a, b := newClientCA(t, "a"), newClientCA(t, "b")
	alice, bob := a.sign(t, "alice"), b.sign(t, "bob")
	expect := func(c *certClient, want string, hint ...*clientCA) {
		t.Helper()
		if got := c.get(t, s); got != want {
			t.Errorf("%s; want %s", got, want)
		}
		var names [][]byte
		for _, ca := range hint {
			names = append(names, ca.cert.RawSubject)
		}
		if !slices.EqualFunc(c.hint(), names, bytes.Equal) {
			t.Errorf("hint %q; want %q", c.hint(), names)
		}
		if (c.asked != nil) != (len(hint) > 0) {
			t.Errorf("asked %t with %d CAs", c.asked != nil, len(hint))
		}
	}
	const h1, h2, end1, end2 = "HTTP/1.1 ", "HTTP/2.0 ", " resumed=false verified=false", " resumed=false verified=false"

	// Without CAs, no certificate is asked for.
	expect(&certClient{cert: alice}, h2+"none"+end2)
	s.pool.Store(poolOf())
	expect(&certClient{cert: alice}, h2+"none"+end2)

	s.pool.Store(poolOf(a))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		expect(&certClient{cert: alice, version: version}, h2+"alice"+end2, a)
		expect(&certClient{cert: alice, version: version, http1: true}, h1+"alice"+end1, a)
		expect(&certClient{version: version}, h2+"none"+end2, a)
		expect(&certClient{cert: bob, version: version}, h2+"none"+end2, a) // does not fit the hint
	}

	// TLS does not verify: this one has the name of the CA, but not its signature.
	forged := newClientCA(t, "a").sign(t, "mallory")
	expect(&certClient{cert: forged}, h2+"mallory"+end2, a)

	// The hint changes while the server runs.
	s.pool.Store(poolOf(a, b))
	expect(&certClient{cert: bob}, h2+"bob"+end2, a, b)
	s.pool.Store(poolOf(b))
	expect(&certClient{cert: alice}, h2+"none"+end2, b)
	s.pool.Store(nil)
	expect(&certClient{cert: alice}, h2+"none"+end2)
}

func TestSessionsAreResumedWithTheSameHint(t *testing.T) {
	a, b := newClientCA(t, "a"), newClientCA(t, "b")
	bob := b.sign(t, "bob")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		s := newCertServer(t)
		newClient := func() *certClient {
			return &certClient{cert: bob, version: version, sessions: tls.NewLRUClientSessionCache(8)}
		}
		c, other := newClient(), newClient()
		expect := func(c *certClient, client string, resumed bool) {
			t.Helper()
			want := fmt.Sprintf("HTTP/2.0 %s resumed=%t verified=false", client, resumed)
			if got := c.get(t, s); got != want {
				t.Errorf("%s: %s; want %s", tls.VersionName(version), got, want)
			}
		}
		expect(c, "none", false)
		expect(c, "none", true)
		expect(other, "none", false)

		s.pool.Store(poolOf(a))
		expect(c, "none", false)
		expect(c, "none", true)

		// The client must not remain without a certificate now.
		s.pool.Store(poolOf(a, b))
		expect(c, "bob", false)
		expect(c, "bob", true)
		expect(other, "bob", false)

		// The same CAs, read again.
		s.pool.Store(poolOf(b, a))
		expect(c, "bob", true)
		expect(c, "bob", true)

		s.pool.Store(nil)
		expect(c, "none", false)
		expect(c, "none", true)
	}
}

// The config of a connection is made once for a pool, not for each connection.
func TestConfigIsKeptForTheSamePool(t *testing.T) {
	a := newClientCA(t, "a")
	pool := poolOf(a)
	r := &clientCertRequest{base: &tls.Config{}}
	first := r.configFor(pool)
	if r.configFor(pool) != first || r.configFor(poolOf(a)) != first {
		t.Error("made again for the same CAs")
	}
	if none := r.configFor(nil); none == first || none != r.configFor(nil) {
		t.Error("without CAs")
	}
	if again := r.configFor(pool); again == first {
		t.Error("the config of an earlier pool, whose sessions could be resumed")
	}
}
