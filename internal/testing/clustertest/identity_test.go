// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// writeCA writes a CA as localcluster does.
func writeCA(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"ca.crt": ca, "ca.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return pool
}

func TestClientCert(t *testing.T) {
	c := &Cluster{Dir: t.TempDir()}
	if err := os.Mkdir(c.pki(""), 0o700); err != nil {
		t.Fatal(err)
	}
	pool := writeCA(t, c.pki(""))
	for _, tt := range []struct {
		make    func(string, ...string) (cert, key []byte, err error)
		trusted bool
	}{{c.ClientCert, true}, {ForeignCert, false}} {
		cert, key, err := tt.make("ada", "b", "a")
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		if s := pair.Leaf.Subject; s.CommonName != "ada" || !slices.Equal(slices.Sorted(slices.Values(s.Organization)), []string{"a", "b"}) {
			t.Errorf("the subject is %v", s)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != tt.trusted {
			t.Errorf("trusted %v: %v", tt.trusted, err)
		}
	}
}

func TestIssuer(t *testing.T) {
	issuer, err := StartIssuer()
	if err != nil {
		t.Fatal(err)
	}
	defer issuer.Close()
	file := filepath.Join(t.TempDir(), "authentication.json")
	if err := issuer.WriteConfig(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		JWT []struct {
			Issuer struct {
				URL, CertificateAuthority string
				Audiences                 []string
			}
		}
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	// The tokens are verified with what the file tells an API server.
	configured := config.JWT[0].Issuer
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(configured.CertificateAuthority))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	ctx := oidc.ClientContext(t.Context(), &http.Client{Transport: transport})
	provider, err := oidc.NewProvider(ctx, configured.URL)
	if err != nil {
		t.Fatal(err)
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: configured.Audiences[0]})
	for _, expiration := range []time.Duration{time.Minute, -time.Minute} {
		token, err := issuer.Token("ada", expiration, "engineers")
		if err != nil {
			t.Fatal(err)
		}
		verified, err := verifier.Verify(ctx, token)
		if expiration < 0 {
			if err == nil {
				t.Error("an expired token is accepted")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var claims struct{ Groups []string }
		if err := verified.Claims(&claims); err != nil || verified.Subject != "ada" || !slices.Equal(claims.Groups, []string{"engineers"}) {
			t.Errorf("%s, %v, %v", verified.Subject, claims.Groups, err)
		}
	}
}
