// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
)

// tokenTTL is how long the result of a TokenReview is used, as in the API server's
// delegating authenticator.
const tokenTTL = 10 * time.Second

// The bounds of TokenReviews for tokens that are not cached. Anyone who can connect causes
// one by a token that they make up, which costs the API server, and an attacker has any
// number of tokens. So addresses take turns, and none has more than a part of the slots: a
// flood from one address, or from a few, delays the reviews for others by the time of some
// reviews, and does not reach the API server in full. Callers whose tokens are cached need no
// slot; refused tokens have a cache of their own, so that they displace no accepted ones.
// The reviews of open watches (Permits) have no bound here.
//
// This does not defend against an attacker with many addresses, who gets the turns of all of
// them and can fill the queue; against one behind the same address as others, such as a load
// balancer that does not keep the addresses of clients; or against floods of connections
// and TLS handshakes. Such floods are for the network to stop: NetworkPolicies, or a proxy
// that limits rates. Headers such as X-Forwarded-For do not count, since anyone can set them.
const (
	maxReviews           = 64
	maxReviewsPerAddress = 16
	// Further ones wait for reviewWait, and get a 429 then, or at once if many wait.
	reviewWait             = 5 * time.Second
	maxWaitingPerAddress   = 1024
	maxWaitingReviews      = 8192
	reviewRetry            = 1  // seconds
	refusedTokensPerCached = 8  // one refused token is cached for so many others
	ipv6Prefix             = 64 // bits of an IPv6 address that one client may have all addresses of
)

// A tokenID identifies a token and is not secret.
type tokenID [sha256.Size]byte

// idOf does not copy the token, a kilobyte for each request.
func idOf(token string) tokenID {
	return sha256.Sum256(unsafe.Slice(unsafe.StringData(token), len(token)))
}

// tokens authenticates bearer tokens by TokenReview. It caches the results; unlike the
// cache of k8s.io/apiserver it can forget one.
type tokens struct {
	review   authenticator.Token // returns an error only if there was no answer
	inflight *upstream.Inflight[*reviewedToken]
	known    *cache.LRUExpireCache // tokenID to *reviewedToken
	refused  *cache.LRUExpireCache // the same of refused tokens
	reviews  *fairness.Queue       // by address
	hints    *hints
}

// A reviewedToken is the result of a review. If the token was refused, resp is nil.
type reviewedToken struct {
	resp   *authenticator.Response
	caller atomic.Pointer[Caller] // of resp; nil until the first request ends
	hints  uint64                 // that came before the review
}

func newTokens(review authenticator.Token, size int, h *hints, b *upstream.Background) *tokens {
	return &tokens{
		review:   review,
		inflight: upstream.NewInflight[*reviewedToken](b, ReviewTimeout),
		known:    cache.NewLRUExpireCache(size),
		refused:  cache.NewLRUExpireCache(max(1, size/refusedTokensPerCached)),
		reviews: fairness.NewQueue(fairness.QueueOptions{
			Slots: maxReviews, PerKey: maxReviewsPerAddress, Wait: reviewWait,
			MaxWaiting: maxWaitingPerAddress, MaxAllWaiting: maxWaitingReviews,
		}),
		hints: h,
	}
}

// cached returns the cached result for a token, nil if there is none.
func (t *tokens) cached(id tokenID) *reviewedToken {
	for _, c := range []*cache.LRUExpireCache{t.known, t.refused} {
		if known, ok := c.Get(id); ok {
			r := known.(*reviewedToken)
			if r.resp != nil && t.hints.concernCredential(r.hints, r.resp.User) {
				return nil
			}
			return r
		}
	}
	return nil
}

// remember caches a result in place of an earlier one.
func (t *tokens) remember(id tokenID, r *reviewedToken) {
	in, other := t.known, t.refused
	if r.resp == nil {
		in, other = other, in
	}
	in.Add(id, r, t.ttl(r))
	other.Remove(id)
}

// forget makes the next request with a token ask the API server.
func (t *tokens) forget(id tokenID) { t.known.Remove(id) }

// seenKey is the key of a *seenToken in the context of a request.
type seenKey struct{}

// A seenToken is the token that authenticated a request.
type seenToken struct {
	address string // of the client, as a key of the queue
	token   string
	id      tokenID
	result  *reviewedToken
	failure error // why a token could not be reviewed
}

// AuthenticateToken implements authenticator.Token for a request whose context has a
// *seenToken.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	id, seen := idOf(token), ctx.Value(seenKey{}).(*seenToken)
	result := t.cached(id)
	if result == nil {
		address := seen.address
		var err error
		result, err = t.inflight.Do(ctx, string(id[:]), func(ctx context.Context) (*reviewedToken, error) {
			if known := t.cached(id); known != nil { // reviewed meanwhile
				return known, nil
			}
			slot, err := t.reviews.Acquire(ctx, address)
			if err != nil {
				return nil, err
			}
			defer slot.Release()
			result, err := t.ask(ctx, token)
			if err == nil {
				t.remember(id, result)
			}
			return result, err
		})
		if err != nil {
			seen.failure = err
			return nil, false, err
		}
	}
	if result.resp == nil {
		return nil, false, nil
	}
	seen.token, seen.id, seen.result = token, id, result
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
	resp, ok, err := t.review.AuthenticateToken(ctx, token)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return &reviewedToken{}, nil
	}
	return &reviewedToken{resp: resp, hints: before}, nil
}

// addressKey returns the part of a request's remote address that one client has.
func addressKey(remote string) string {
	of, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := of.Addr().Unmap()
	if prefix, err := ip.Prefix(ipv6Prefix); ip.Is6() && err == nil {
		return prefix.String()
	}
	return ip.String()
}

// isBusy reports whether an error means that too many reviews were asked for.
func isBusy(err error) bool {
	return errors.Is(err, fairness.ErrBusy) || errors.Is(err, fairness.ErrShare)
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
