// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// DefaultCacheSize is the number of tokens, and of decisions, that are cached.
const DefaultCacheSize = 8192

// SharedOptions configure shared mode. The zero value is usable.
type SharedOptions struct {
	// Audiences are those that tokens may be for; none means those of the API server.
	Audiences []string
	// Tokens and Decisions are how many of them are cached; zero means [DefaultCacheSize].
	Tokens, Decisions int
	// Impersonator is the API server with the credentials by which callers are impersonated
	// that have no token; nil if they are not.
	Impersonator *upstream.Server
}

// Shared is the access control of shared mode: who makes a request, and what the API
// server allows that user. It is safe for concurrent use.
type Shared struct {
	*Authenticator
	*Authorizer
	Permits      *Permits
	Impersonator *upstream.Server // nil for none

	up  *upstream.Server
	log *slog.Logger
}

// Reviews are how the API server is asked: k8s.io/apiserver's libraries, see internal/serve/delegated.
type Reviews struct {
	Certificates Certificates
	Tokens       authenticator.Token // returns an error only if the API server gave no answer
	Rights       authorizer.Authorizer
}

// NewShared returns the access control of an API server, which has to be run.
func NewShared(up *upstream.Server, r Reviews, opts SharedOptions, b *upstream.Background, log *slog.Logger) *Shared {
	if opts.Tokens == 0 {
		opts.Tokens = DefaultCacheSize
	}
	if opts.Decisions == 0 {
		opts.Decisions = DefaultCacheSize
	}
	credentials := newHints()
	s := &Shared{
		Authenticator: newAuthenticator(r.Certificates, newTokens(r.Tokens, opts.Tokens, credentials, b)),
		Authorizer:    newAuthorizer(r.Rights, opts.Decisions, b),
		Impersonator:  opts.Impersonator, up: up, log: log,
	}
	s.Authorizer.ready = up.ReadySince
	s.Permits = NewPermits(s.Authorizer, credentials, log)
	return s
}

// Run follows the cluster's CAs, and checks permits, until ctx ends.
func (s *Shared) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.certificates.Run(ctx) })
	running.Go(func() { s.Permits.Run(ctx) })
	running.Go(func() { s.checkNeeds(ctx) })
	running.Wait()
}

// Refused returns the status for an error of [Authenticator.Authenticate].
func Refused(err error) *metav1.Status {
	if err == ErrUnauthenticated { //nolint:errorlint // it is never wrapped
		return status.Unauthorized(err.Error())
	}
	if isBusy(err) {
		return status.TooMany("too many tokens are being checked, from this address or from all: try again", reviewRetry)
	}
	return status.Unavailable("the credentials cannot be checked: the API server gave no answer: "+err.Error(), true)
}

// Forwards reports whether a caller can be passed through to the API server: with its
// token, or by impersonation.
func (s *Shared) Forwards(c *Caller) bool {
	return c.HasToken() || s.Impersonator != nil && Impersonable(c.User) == ""
}

// Impersonable returns why a user is never impersonated, "" for others.
func Impersonable(u user.Info) string {
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return "is in the group " + user.SystemPrivilegedGroup
	}
	texts := slices.Concat([]string{u.GetName(), u.GetUID()}, u.GetGroups())
	for key, values := range u.GetExtra() {
		texts = append(append(texts, key), values...)
	}
	for _, text := range texts {
		// HTTP/1.1 trims the value of a header: "system:masters " would become another group.
		if strings.Trim(text, " \t\r\n\v\f") != text || !httpguts.ValidHeaderFieldValue(text) {
			return fmt.Sprintf("has %q, which cannot be sent in a header as it is", text)
		}
	}
	return ""
}

// Require returns why a caller may not do something that only the gateway answers; nil
// if the API server allows it.
func (s *Shared) Require(ctx context.Context, c *Caller, all ...*authorizer.AttributesRecord) *metav1.Status {
	for _, a := range all {
		if v := s.Decide(ctx, c, a); !v.Allowed() {
			return v.Refusal(a)
		}
	}
	return nil
}

// Impersonates reports whether a request asks to act as another user.
func Impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}
