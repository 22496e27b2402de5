// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/watchkeeper/watchkeeper/internal/upstream"
)

// tokenTTL is how long the result of a TokenReview is used, as in the API server's
// delegating authenticator.
const tokenTTL = 10 * time.Second

// A tokenID identifies a token and is not secret.
type tokenID [sha256.Size]byte

func idOf(token string) tokenID { return sha256.Sum256([]byte(token)) }

// tokens authenticates bearer tokens by TokenReview. It caches the results; unlike the
// cache of k8s.io/apiserver it can forget one.
type tokens struct {
	review    authenticator.Token
	audiences authenticator.Audiences
	inflight  *upstream.Inflight[*reviewedToken]
	known     *cache.LRUExpireCache // tokenID to *reviewedToken
	hints     *hints
}

// A reviewedToken is the result of a review. If the token was refused, resp is nil.
type reviewedToken struct {
	resp    *authenticator.Response
	refusal error
	caller  atomic.Pointer[Caller] // of resp; nil until the first request ends
	hints   uint64                 // that came before the review
}

func newTokens(review authenticator.Token, audiences authenticator.Audiences, size int, h *hints, b *upstream.Background) *tokens {
	return &tokens{
		review: review, audiences: audiences,
		inflight: upstream.NewInflight[*reviewedToken](b, callTimeout),
		known:    cache.NewLRUExpireCache(size), hints: h,
	}
}

// cached returns the cached result for a token, nil if there is none.
func (t *tokens) cached(id tokenID) *reviewedToken {
	known, ok := t.known.Get(id)
	if !ok {
		return nil
	}
	r := known.(*reviewedToken)
	if r.resp != nil && t.hints.concernCredential(r.hints, r.resp.User) {
		return nil
	}
	return r
}

// forget makes the next request with a token ask the API server.
func (t *tokens) forget(id tokenID) { t.known.Remove(id) }

// seenKey is the key of a *seenToken in the context of a request.
type seenKey struct{}

// A seenToken is the token that authenticated a request.
type seenToken struct {
	token  string
	id     tokenID
	result *reviewedToken
}

// AuthenticateToken implements authenticator.Token for a request whose context has a
// *seenToken.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	id := idOf(token)
	result := t.cached(id)
	if result == nil {
		var err error
		result, err = t.inflight.Do(ctx, string(id[:]), func(ctx context.Context) (*reviewedToken, error) {
			if known := t.cached(id); known != nil { // reviewed meanwhile
				return known, nil
			}
			result, err := t.ask(ctx, token)
			if err == nil {
				t.known.Add(id, result, t.ttl(result))
			}
			return result, err
		})
		if err != nil {
			return nil, false, err
		}
	}
	if result.resp == nil {
		return nil, false, result.refusal
	}
	*ctx.Value(seenKey{}).(*seenToken) = seenToken{token, id, result}
	return result.resp, true, nil
}

// ttl returns how long a result of now is used.
func (t *tokens) ttl(r *reviewedToken) time.Duration {
	if r.resp != nil && !t.hints.untilCredential(r.resp.User).IsZero() {
		return hintedTTL
	}
	return tokenTTL
}

// ask reviews a token. The error means that the API server gave no answer.
func (t *tokens) ask(ctx context.Context, token string) (*reviewedToken, error) {
	before := t.hints.count()
	if len(t.audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, t.audiences)
	}
	resp, ok, err := t.review.AuthenticateToken(ctx, token)
	switch {
	case ok:
		return &reviewedToken{resp: resp, hints: before}, nil
	case err != nil && isUnavailable(err):
		return nil, err
	}
	return &reviewedToken{refusal: err}, nil
}

// isUnavailable reports whether an error of an authenticator means that the API server
// gave no answer. For an invalid token it answers with an error that has no type.
func isUnavailable(err error) bool {
	if all, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		return slices.ContainsFunc(all.Errors(), isUnavailable)
	}
	var answer apierrors.APIStatus
	var transport *url.Error
	var network net.Error
	return errors.As(err, &answer) || errors.As(err, &transport) || errors.As(err, &network) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, upstream.ErrShutdown)
}

// expiry returns the end of a token if it is a JWT that has one. The API server has
// verified the token.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp json.Number `json:"exp"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return time.Time{}
	}
	seconds, err := claims.Exp.Float64()
	if err != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}
