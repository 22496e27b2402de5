// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"

	"github.com/watchkeeper/watchkeeper/internal/upstream"
)

const (
	// callTimeout bounds a review, as in the API server's delegating authenticator.
	callTimeout = 10 * time.Second
	// readyTimeout bounds the wait for the cluster's CAs at the start.
	readyTimeout = 3 * time.Second
	// The ConfigMap that has the CAs of clients and of front proxies. The API server writes
	// it, and extension API servers read it.
	authenticationNamespace = "kube-system"
	authenticationConfigMap = "extension-apiserver-authentication"
)

// reviewBackoff is that of the API server's delegating authenticator, with fewer steps,
// since a client waits.
var reviewBackoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 2}

// ErrUnauthenticated is returned for a request without credentials, or with credentials
// that are not accepted. Its text is that of the API server.
var ErrUnauthenticated = errors.New("Unauthorized") //nolint:staticcheck // as above

// An UnavailableError is returned if the API server gave no answer to a review.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return upstream.Cause(e.Err) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// An Authenticator finds the caller of a request as the API server does, and in its
// order: by a front proxy or a client certificate that the cluster trusts, or by a bearer
// token. It is safe for concurrent use.
type Authenticator struct {
	certificates, bearers authenticator.Request
	tokens                *tokens
	clientCA, proxyCA     *dynamiccertificates.ConfigMapCAController
	proxyHeaders          *headerrequest.RequestHeaderAuthRequestController
}

// NewAuthenticator returns an authenticator, which has to be run. Tokens have to be for
// one of the audiences, or for those of the API server if there are none. The results of
// up to cacheSize tokens are cached for ten seconds.
func NewAuthenticator(client kubernetes.Interface, audiences []string, cacheSize int, h *hints, b *upstream.Background) (*Authenticator, error) {
	a := &Authenticator{}
	var err error
	follow := func(purpose, key string) *dynamiccertificates.ConfigMapCAController {
		c, invalid := dynamiccertificates.NewDynamicCAFromConfigMapController(purpose, authenticationNamespace, authenticationConfigMap, key, client)
		err = errors.Join(err, invalid)
		return c
	}
	a.clientCA = follow("client-ca", "client-ca-file")
	a.proxyCA = follow("front-proxy-ca", "requestheader-client-ca-file")
	if err != nil {
		return nil, err
	}
	a.proxyHeaders = headerrequest.NewRequestHeaderAuthRequestController(authenticationConfigMap, authenticationNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	headers := a.proxyHeaders
	a.certificates, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		ClientCertificateCAContentProvider: a.clientCA,
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider:   a.proxyCA,
			UsernameHeaders:     headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
			UIDHeaders:          headerrequest.StringSliceProviderFunc(headers.UIDHeaders),
			GroupHeaders:        headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
			ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes),
			AllowedClientNames:  headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
		},
	}.New()
	if err != nil {
		return nil, err
	}
	a.tokens = newTokens(tokenReviews{client.AuthenticationV1().TokenReviews(), audiences}, cacheSize, h, b)
	a.bearers = group.NewAuthenticatedGroupAdder(union.New(bearertoken.New(a.tokens), websocket.NewProtocolAuthenticator(a.tokens)))
	return a, nil
}

// Run follows the cluster's CAs until ctx ends.
func (a *Authenticator) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context, int){a.clientCA.Run, a.proxyCA.Run, a.proxyHeaders.Run} {
		running.Go(func() { run(ctx, 1) })
	}
	running.Wait()
}

// WaitReady waits a short time for the cluster's CAs, without which no client certificate
// is accepted.
func (a *Authenticator) WaitReady(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for len(a.clientCA.CurrentCABundleContent()) == 0 || len(a.proxyHeaders.UsernameHeaders()) == 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ClientCAs returns the CAs of the client certificates that are accepted, in PEM; empty
// while they are not known.
func (a *Authenticator) ClientCAs() []byte {
	return slices.Concat(a.clientCA.CurrentCABundleContent(), []byte("\n"), a.proxyCA.CurrentCABundleContent())
}

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
	equal := func(s string) bool { return strings.EqualFold(s, name) }
	begins := func(prefix string) bool {
		return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
	}
	return begins("X-Remote-") || slices.ContainsFunc(a.proxyHeaders.UsernameHeaders(), equal) ||
		slices.ContainsFunc(a.proxyHeaders.UIDHeaders(), equal) || slices.ContainsFunc(a.proxyHeaders.GroupHeaders(), equal) ||
		slices.ContainsFunc(a.proxyHeaders.ExtraHeaderPrefixes(), begins)
}
