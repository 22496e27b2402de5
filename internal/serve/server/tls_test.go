// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/server"
)

// writePair writes a new key and certificate for 127.0.0.1 and returns a pool
// that trusts it.
func writePair(t testing.TB, certFile, keyFile string, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile:  {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	pool := writePair(t, certFile, keyFile, 1)
	s := start(t, echo, server.Options{Cert: server.CertOptions{File: certFile, KeyFile: keyFile}})
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatalf("url %q", s.url)
	}
	for want, forceHTTP2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: forceHTTP2}
		if proto, code, body := fetch(t, transport, s.url+"/api"); proto != want || code != 200 || body != "/api" {
			t.Errorf("%s: %s %d %q", want, proto, code, body)
		}
	}

	// An incomplete pair changes nothing.
	if err := os.WriteFile(keyFile, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The server looks at the files once a second, when a client connects.
	connectUntil(t, s.url, pool, func(err error) bool {
		if err != nil {
			t.Fatalf("with a broken pair: %v", err)
		}
		return strings.Contains(s.log.String(), "not reloaded")
	})
	pool = writePair(t, certFile, keyFile, 2)
	connectUntil(t, s.url, pool, func(err error) bool { return err == nil })
	if _, code, _ := fetch(t, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, s.url+"/api"); code != 200 {
		t.Errorf("with the new pair: %d", code)
	}
}

// connectUntil repeatedly connects to the server, until done returns true for the error
// of a handshake.
func connectUntil(t *testing.T, url string, pool *x509.CertPool, done func(error) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{RootCAs: pool})
		if err == nil {
			conn.Close()
		}
		if done(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the result never changes: %v", err)
		}
	}
}

// TestStandardHTTP2: both HTTP/2 servers answer. They are told apart by net/http's setting
// for the size of frames, which ours leaves at its default.
func TestStandardHTTP2(t *testing.T) {
	for _, standard := range []bool{false, true} {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		pool := writePair(t, certFile, keyFile, 1)
		s := start(t, echo, server.Options{Cert: server.CertOptions{File: certFile, KeyFile: keyFile}, StandardHTTP2: standard})
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
		if proto, code, body := fetch(t, transport, s.url+"/api"); proto != "HTTP/2.0" || code != 200 || body != "/api" {
			t.Errorf("standard %v: %s %d %q", standard, proto, code, body)
		}
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		framer := http2.NewFramer(conn, conn)
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, set := frame.(*http2.SettingsFrame).Value(http2.SettingMaxFrameSize); set != standard {
			t.Errorf("standard %v: %v", standard, frame)
		}
		conn.Close()
	}
}
