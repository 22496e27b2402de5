// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// slowReviews accepts the token "good", and takes a second for each.
type slowReviews struct{ running, most, asked atomic.Int32 }

func (s *slowReviews) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	s.asked.Add(1)
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	defer s.running.Add(-1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if token != "good" {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "jane"}}, true, nil
}

// authenticatorOf returns an authenticator of tokens only.
func authenticatorOf(review authenticator.Token, b *upstream.Background) *Authenticator {
	return newAuthenticator(nil, newTokens(review, DefaultCacheSize, newHints(), b))
}

func withToken(ctx context.Context, address, token string) *http.Request {
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "/api", http.NoBody)
	r.RemoteAddr = address
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// TestTokenFlood: made-up tokens from one address take a part of the reviews, are refused
// beyond a bound, and leave those of another address alone.
func TestTokenFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := upstream.NewBackground()
		defer b.Stop()
		reviews := &slowReviews{}
		a := authenticatorOf(reviews, b)
		const flood = 3000
		var refused, busy atomic.Int32
		ended := make(chan struct{}, flood)
		for n := range flood {
			go func() {
				_, err := a.Authenticate(withToken(t.Context(), fmt.Sprintf("10.0.0.1:%d", 1+n), fmt.Sprint("made-up-", n)))
				switch s := Refused(err); s.Code {
				case http.StatusUnauthorized:
					refused.Add(1)
				case http.StatusTooManyRequests:
					if busy.Add(1); s.Details.RetryAfterSeconds < 1 {
						t.Error("no Retry-After")
					}
				default:
					t.Error(err)
				}
				ended <- struct{}{}
			}()
		}
		synctest.Wait()
		if n := reviews.running.Load(); n != maxReviewsPerAddress {
			t.Errorf("%d reviews at a time for one address", n)
		}
		if n := busy.Load(); n != flood-maxReviewsPerAddress-maxWaitingPerAddress {
			t.Errorf("%d requests were refused at once", n)
		}
		caller, err := a.Authenticate(withToken(t.Context(), "10.0.0.2:1", "good"))
		if err != nil || caller.User.GetName() != "jane" {
			t.Error("another address:", err)
		}
		for range flood {
			<-ended
		}
		t.Logf("%d tokens refused, %d not checked, %d reviews", refused.Load(), busy.Load(), reviews.asked.Load())
		if refused.Load()+busy.Load() != flood || a.tokens.reviews.Keys() != 0 {
			t.Errorf("%d keys are left", a.tokens.reviews.Keys())
		}
		asked := reviews.asked.Load()
		if _, err := a.Authenticate(withToken(t.Context(), "10.0.0.1:1", "good")); err != nil || reviews.asked.Load() != asked {
			t.Error("a cached token needs no review:", err)
		}
	})
}

// TestManyAddresses: not more than maxReviews are asked for at a time.
func TestManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := upstream.NewBackground()
		defer b.Stop()
		reviews := &slowReviews{}
		a := authenticatorOf(reviews, b)
		const all = 300
		ended := make(chan error, all)
		for n := range all {
			go func() {
				_, err := a.Authenticate(withToken(t.Context(), fmt.Sprintf("10.0.%d.1:1", n%100), fmt.Sprint("made-up-", n)))
				ended <- err
			}()
		}
		for range all {
			if err := <-ended; err != ErrUnauthenticated {
				t.Error(err)
			}
		}
		if n := reviews.most.Load(); n != maxReviews {
			t.Errorf("%d reviews at a time", n)
		}
	})
}

// TestRefusedTokensDisplaceNone: refused tokens do not push accepted ones out of the cache.
func TestRefusedTokensDisplaceNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := upstream.NewBackground()
		defer b.Stop()
		instant := reviewFunc(func(token string) bool { return token == "good" })
		tokens := newTokens(instant, 8, newHints(), b)
		ask := func(token string) bool {
			ctx := context.WithValue(t.Context(), seenKey{}, &seenToken{})
			_, ok, _ := tokens.AuthenticateToken(ctx, token)
			return ok
		}
		if !ask("good") {
			t.Fatal("not accepted")
		}
		for n := range 100 {
			ask(fmt.Sprint("made-up-", n))
		}
		if tokens.cached(idOf("good")) == nil || tokens.cached(idOf("made-up-99")) == nil || tokens.cached(idOf("made-up-0")) != nil {
			t.Error("the caches have something else")
		}
	})
}

type reviewFunc func(token string) bool

func (f reviewFunc) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	if !f(token) {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "jane"}}, true, nil
}

func TestAddressKey(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"[2001:db8:1:2::9]:81": "2001:db8:1:2::/64", "@": "@", "": "",
	} {
		if got := addressKey(remote); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}

// reviewOf is what the API server says of every token.
type reviewOf struct {
	user user.Info // nil if the token is refused
	err  error     // of no answer
}

func (r reviewOf) AuthenticateToken(context.Context, string) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: r.user}, r.user != nil, r.err
}

// TestNoAnswerIsNoRefusal: while the API server does not say whether a token is good, a new
// request gets 503, and open watches go on.
func TestNoAnswerIsNoRefusal(t *testing.T) {
	jane := &user.DefaultInfo{Name: "jane"}
	for _, tt := range []struct {
		review reviewOf
		want   upstream.Decision
	}{
		{reviewOf{user: jane}, upstream.Allowed},
		{reviewOf{user: &user.DefaultInfo{Name: "john"}}, upstream.Denied}, // for a watch of jane
		{reviewOf{}, upstream.Denied},
		{reviewOf{err: io.ErrUnexpectedEOF}, upstream.Unknown},
	} {
		b := upstream.NewBackground()
		a := authenticatorOf(tt.review, b)
		caller, err := a.Authenticate(withToken(t.Context(), "127.0.0.1:1", "token"))
		if _, unknown := errors.AsType[*UnavailableError](err); unknown != (tt.want == upstream.Unknown) {
			t.Errorf("%+v: %v", tt.review, err)
		}
		if accepted := err == nil; accepted != (tt.review.user != nil) || accepted && userKey(caller.User) == userKey(tt.review.user) {
			t.Errorf("%+v: %v, %+v", tt.review, err, caller) // the group of all that are authenticated is missing
		}
		watch := a.byToken(&seenToken{token: "token", result: &reviewedToken{resp: &authenticator.Response{User: jane}}}, jane)
		if d, why := watch.again(t.Context()); d != tt.want {
			t.Errorf("%+v: an open watch: %v, want %v: %s", tt.review, d, tt.want, why)
		}
		b.Stop()
	}
}
