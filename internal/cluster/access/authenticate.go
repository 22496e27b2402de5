// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

const (
	// ReviewTimeout bounds a review of a caller, as in the API server's delegating authenticator.
	ReviewTimeout = 10 * time.Second
	// readyTimeout bounds the wait for the cluster's CAs at the start.
	readyTimeout = 3 * time.Second
	// CANamespace and CAConfigMap name the ConfigMap that has the CAs of clients and of front
	// proxies. The API server writes it, and extension API servers read it.
	CANamespace = "kube-system"
	CAConfigMap = "extension-apiserver-authentication"
)

// ErrUnauthenticated is returned for a request without credentials, or with credentials
// that are not accepted. Its text is that of the API server.
var ErrUnauthenticated = errors.New("Unauthorized") //nolint:staticcheck // as above

// An UnavailableError is returned if the API server gave no answer to a review.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return upstream.Cause(e.Err) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Certificates authenticate requests by client certificates, also those of a front proxy that
// names the user in headers. They are safe for concurrent use.
type Certificates interface {
	authenticator.Request
	// Run follows the cluster's CAs until ctx ends.
	Run(ctx context.Context)
	// Ready reports whether the cluster's CAs are known. Before, no certificate is accepted.
	Ready() bool
	// CAs returns the CAs that sign the certificates, in PEM; empty while they are not known.
	CAs() []byte
	// IsProxyHeader reports whether a front proxy of this cluster names the user by a header.
	IsProxyHeader(name string) bool
}

// An Authenticator finds the caller of a request as the API server does, and in its
// order: by a front proxy or a client certificate that the cluster trusts, or by a bearer
// token. It is safe for concurrent use.
type Authenticator struct {
	certificates Certificates
	bearers      authenticator.Request // of tokens
	tokens       *tokens
}

func newAuthenticator(c Certificates, t *tokens) *Authenticator {
	return &Authenticator{
		certificates: c, tokens: t,
		bearers: group.NewAuthenticatedGroupAdder(union.New(bearertoken.New(t), websocket.NewProtocolAuthenticator(t))),
	}
}

// WaitReady waits a short time for the cluster's CAs, without which no client certificate
// is accepted.
func (a *Authenticator) WaitReady(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for !a.certificates.Ready() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ClientCAs returns the CAs of the client certificates that are accepted, in PEM; empty
// while they are not known.
func (a *Authenticator) ClientCAs() []byte { return a.certificates.CAs() }

// Authenticate returns the caller of a request, which it does not change. The error is
// [ErrUnauthenticated] or an *[UnavailableError].
func (a *Authenticator) Authenticate(r *http.Request) (*Caller, error) {
	// An error is no answer: the next authenticator decides, as in the API server.
	if caller, _ := a.byCertificate(r.TLS, r.Header); caller != nil {
		return caller, nil
	}
	authorization := r.Header.Get("Authorization")
	if token, ok := strings.CutPrefix(authorization, "Bearer "); ok {
		if known := a.tokens.cached(idOf(token)); known != nil {
			if caller := known.caller.Load(); caller != nil {
				return caller, nil
			}
		}
	}
	// The authenticators remove the credential from the request that they get.
	seen := &seenToken{address: addressKey(r.RemoteAddr)}
	clone := r.WithContext(context.WithValue(r.Context(), seenKey{}, seen))
	clone.Header = r.Header.Clone()
	resp, ok, _ := a.bearers.AuthenticateRequest(clone)
	switch {
	case ok:
		caller := a.byToken(seen, resp.User)
		seen.result.caller.Store(caller)
		return caller, nil
	case seen.failure != nil:
		return nil, &UnavailableError{seen.failure}
	}
	return nil, ErrUnauthenticated
}

// byCertificate returns the caller that a client certificate names, or that a front proxy
// with a certificate names; nil for none.
func (a *Authenticator) byCertificate(state *tls.ConnectionState, h http.Header) (*Caller, error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil, nil
	}
	resp, ok, err := a.certificates.AuthenticateRequest(&http.Request{Header: h.Clone(), TLS: state})
	if err != nil || !ok {
		return nil, err
	}
	leaf, key := state.PeerCertificates[0], userKey(resp.User)
	sum := idOf(string(leaf.Raw))
	chain := &tls.ConnectionState{PeerCertificates: state.PeerCertificates}
	proxied := a.proxyIdentity(h)
	return &Caller{
		User: resp.User, Expires: leaf.NotAfter, userKey: key,
		credential: "x509:" + hex.EncodeToString(sum[:]) + ":" + key,
		again: func(context.Context) (upstream.Decision, string) {
			again, err := a.byCertificate(chain, proxied)
			switch {
			case err != nil:
				return upstream.Denied, err.Error()
			case again == nil || again.userKey != key:
				return upstream.Denied, "the client certificate is not accepted any more"
			}
			return upstream.Allowed, ""
		},
	}, nil
}

// byToken returns the caller of a token that was accepted.
func (a *Authenticator) byToken(seen *seenToken, u user.Info) *Caller {
	token, id, reviewed := seen.token, seen.id, userKey(seen.result.resp.User)
	return &Caller{
		User: u, Token: token, Expires: expiry(token), userKey: userKey(u),
		credential: "token:" + hex.EncodeToString(id[:]),
		again: func(ctx context.Context) (upstream.Decision, string) {
			result, err := a.tokens.ask(ctx, token)
			switch {
			case err != nil:
				return upstream.Unknown, upstream.Cause(err)
			case result.resp == nil || userKey(result.resp.User) != reviewed:
				a.tokens.forget(id)
				return upstream.Denied, "the token is not accepted any more"
			}
			return upstream.Allowed, ""
		},
	}
}

// proxyIdentity returns the headers by which a front proxy names the user.
func (a *Authenticator) proxyIdentity(h http.Header) http.Header {
	of := http.Header{}
	for name, values := range h {
		if a.IsProxyHeader(name) {
			of[name] = values
		}
	}
	return of
}

// IsProxyHeader reports whether a front proxy names the user by a header, in this cluster
// or by default.
func (a *Authenticator) IsProxyHeader(name string) bool {
	const prefix = "X-Remote-"
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) || a.certificates.IsProxyHeader(name)
}
