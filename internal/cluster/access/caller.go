// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// A Caller is the authenticated user of a request in shared mode. It is immutable.
type Caller struct {
	User user.Info
	// Token is the bearer token of the request; "" for a caller that is known by a client
	// certificate or by a front proxy. It must not be logged.
	Token string
	// Expires is when the credential ends; zero if that is not known.
	Expires time.Time

	// credential identifies the token or certificate; it is not secret.
	credential string
	// userKey identifies the user with all that an authorizer sees of it.
	userKey string
	// again authenticates the credential anew, without a cache.
	again func(context.Context) (upstream.Decision, string)
}

// HasToken reports whether the caller can be passed through to the API server with its
// own credential.
func (c *Caller) HasToken() bool { return c.Token != "" }

// userKey returns a text that is equal for equal users only.
func userKey(u user.Info) string {
	var b keyBuilder
	b.part(u.GetName())
	b.part(u.GetUID())
	for _, g := range slices.Sorted(slices.Values(u.GetGroups())) { // some authenticators have them in any order
		b.part(g)
	}
	extra := u.GetExtra()
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		b.WriteByte('=')
		b.part(name)
		for _, v := range extra[name] {
			b.part(v)
		}
	}
	return b.String()
}

// A keyBuilder makes keys of parts, which cannot be taken for other parts.
type keyBuilder struct{ strings.Builder }

func (b *keyBuilder) part(s string) {
	b.WriteString(strconv.Itoa(len(s)))
	b.WriteByte(':')
	b.WriteString(s)
}

type callerKey struct{}

// WithCaller returns a request with its caller.
func WithCaller(r *http.Request, c *Caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// CallerOf returns the caller of a request; nil in local mode, where everybody acts with
// the gateway's identity.
func CallerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
