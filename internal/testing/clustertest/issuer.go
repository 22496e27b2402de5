// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// An Issuer of tokens on loopback, as an OpenID Connect provider, for API servers that
// use structured authentication configuration. Its tokens name users with the prefix
// "oidc:", and groups as they are.
type Issuer struct {
	key    *ecdsa.PrivateKey
	server *httptest.Server
}

const (
	issuerKey      = "key"
	issuerAudience = "watchkeeper-test"
	// IssuerUserPrefix precedes the names of an Issuer's users at the API server.
	IssuerUserPrefix = "oidc:"
)

// StartIssuer starts an issuer, which has to be closed.
func StartIssuer() (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	provider := &oidctest.Server{
		PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: issuerKey, Algorithm: oidc.ES256}},
		Algorithms: []string{oidc.ES256},
	}
	server := httptest.NewUnstartedServer(provider)
	server.StartTLS()
	provider.SetIssuer(server.URL)
	return &Issuer{key: key, server: server}, nil
}

// Close stops the issuer.
func (i *Issuer) Close() { i.server.Close() }

// WriteConfig writes the configuration file of an API server that accepts the issuer's
// tokens, for the flag "--apiserver-arg authentication-config=FILE" of Start. The API
// server accepts them some seconds after its start.
func (i *Issuer) WriteConfig(file string) error {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	none := ""
	prefix := IssuerUserPrefix
	type claim struct {
		Claim  string  `json:"claim"`
		Prefix *string `json:"prefix"`
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer": map[string]any{
				"url":                  i.server.URL,
				"audiences":            []string{issuerAudience},
				"certificateAuthority": string(ca),
			},
			"claimMappings": map[string]any{
				"username": claim{"sub", &prefix},
				"groups":   claim{"groups", &none},
			},
		}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, config, 0o600)
}

// Token returns a token of a user in groups that expires after a duration.
func (i *Issuer) Token(user string, expiration time.Duration, groups ...string) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iss":    i.server.URL,
		"aud":    issuerAudience,
		"sub":    user,
		"groups": groups,
		"iat":    time.Now().Unix(),
		"exp":    time.Now().Add(expiration).Unix(),
	})
	if err != nil {
		return "", err
	}
	return oidctest.SignIDToken(i.key, issuerKey, oidc.ES256, string(claims)), nil
}
