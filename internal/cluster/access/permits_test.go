// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// A fakeAuthorizer is an authorizer whose answers a test sets.
type fakeAuthorizer struct {
	mu      sync.Mutex
	refused map[string]bool // by the user's name
	fails   error
	asked   map[string]int
}

func newFakeAuthorizer() *fakeAuthorizer {
	return &fakeAuthorizer{refused: map[string]bool{}, asked: map[string]int{}}
}

func (r *fakeAuthorizer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := a.GetUser().GetName()
	r.asked[name]++
	switch {
	case r.fails != nil:
		return authorizer.DecisionNoOpinion, "", r.fails
	case r.refused[name]:
		return authorizer.DecisionNoOpinion, "not any more", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func (r *fakeAuthorizer) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, a))
}

func (r *fakeAuthorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

func (r *fakeAuthorizer) refuse(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[name] = true
}

func (r *fakeAuthorizer) allow(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refused, name)
}

func (r *fakeAuthorizer) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = err
}

// count returns how often a user was asked about since the last call.
func (r *fakeAuthorizer) count(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.asked[name]
	r.asked[name] = 0
	return n
}

func newTestAuthorizer(t *testing.T, r authorizer.Authorizer) *Authorizer {
	t.Helper()
	b := upstream.NewBackground()
	t.Cleanup(b.Stop)
	return &Authorizer{review: r, inflight: upstream.NewInflight[Verdict](b, ReviewTimeout), known: cache.NewLRUExpireCache(100), hints: newHints(), asked: newQuestions()}
}

// callerNamed returns a caller whose credential is always accepted.
func callerNamed(name string, groups ...string) *Caller {
	u := &user.DefaultInfo{Name: name, Groups: groups}
	return &Caller{User: u, Token: "t", credential: "token:" + name, userKey: userKey(u),
		again: func(context.Context) (upstream.Decision, string) { return upstream.Allowed, "" }}
}

func watchPods(c *Caller, namespace string) *authorizer.AttributesRecord {
	return &authorizer.AttributesRecord{User: c.User, ResourceRequest: true, Verb: "watch", APIVersion: "v1", Resource: "pods", Namespace: namespace}
}

// runPermits runs permits until the test ends.
func runPermits(t *testing.T, z *Authorizer) *Permits {
	t.Helper()
	p := NewPermits(z, newHints(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return p
}

func ended(p *Permit) bool {
	synctest.Wait()
	return p.Refusal() != nil
}

// TestPermitsAreShared: equal watches of a user cost one review a minute together, and a
// watch that has ended costs none.
func TestPermitsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		p := runPermits(t, newTestAuthorizer(t, r))
		a, b := callerNamed("a"), callerNamed("b")
		var all []*Permit
		for range 100 {
			all = append(all, p.Open(a, watchPods(a, "x")), p.Open(b, watchPods(b, "x")))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			if n := r.count(name); n < 8 || n > 13 {
				t.Errorf("%d reviews of %s in ten minutes", n, name)
			}
		}
		for _, permit := range all {
			permit.Close()
			permit.Close() // twice does no harm
		}
		if n := p.Counts(); n != 0 {
			t.Errorf("%d rights are still known", n)
		}
		time.Sleep(10 * time.Minute)
		if n := r.count("a"); n != 0 {
			t.Errorf("%d reviews without a watch", n)
		}
	})
}

// TestPermitEnds: without a hint a revoked right ends its watches within 75 s, and only
// those.
func TestPermitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		p := runPermits(t, newTestAuthorizer(t, r))
		a, b := callerNamed("a"), callerNamed("b")
		one, two := p.Open(a, watchPods(a, "x")), p.Open(b, watchPods(b, "x"))
		r.refuse("a")
		time.Sleep(76 * time.Second)
		if !ended(one) || one.Refusal().Code != 403 {
			t.Errorf("refusal: %v", one.Refusal())
		}
		if ended(two) {
			t.Error("the other user's watch ended")
		}
	})
}

// TestHintIsRepeated: the API server's authorizer may lag behind the object that gave the
// hint, so it is asked again for ten seconds.
func TestHintIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		p := runPermits(t, newTestAuthorizer(t, r))
		a, b := callerNamed("a", "team"), callerNamed("b")
		one, two := p.Open(a, watchPods(a, "x")), p.Open(b, watchPods(b, "x"))
		r.count("a")
		p.Hint(Hint{Subjects: []rbacv1.Subject{{Kind: "Group", Name: "team"}}, Namespace: "x"})
		time.Sleep(6 * time.Second)
		if n := r.count("a"); n < 2 {
			t.Errorf("%d reviews in six seconds after a hint", n)
		}
		r.refuse("a")
		time.Sleep(4 * time.Second)
		if !ended(one) {
			t.Error("the watch goes on")
		}
		if n := r.count("b"); n != 0 || ended(two) {
			t.Errorf("%d reviews of a user whom the hint does not concern", n)
		}
	})
}

// TestFailedReviewIsNoDenial: a watch outlives five minutes of an API server that gives no
// decision, and no more.
func TestFailedReviewIsNoDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		p := runPermits(t, newTestAuthorizer(t, r))
		a := callerNamed("a")
		permit := p.Open(a, watchPods(a, "x"))
		r.fail(errors.New("connection refused"))
		time.Sleep(4*time.Minute + 50*time.Second)
		if ended(permit) {
			t.Fatalf("ended: %v", permit.Refusal())
		}
		r.fail(nil)
		time.Sleep(time.Minute)
		r.fail(errors.New("connection refused"))
		time.Sleep(3*time.Minute + 30*time.Second) // the last success was up to a minute before
		if ended(permit) {
			t.Fatalf("ended, although a review succeeded between: %v", permit.Refusal())
		}
		time.Sleep(3 * time.Minute)
		if !ended(permit) || permit.Refusal().Code != 503 {
			t.Errorf("refusal: %v", permit.Refusal())
		}
	})
}

// TestDenialBeforeReady: an API server that is not ready denies what it allows later. Such a
// denial ends no watch and is not cached.
func TestDenialBeforeReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		z := newTestAuthorizer(t, r)
		var starting atomic.Bool
		var since time.Time
		z.ready = func(context.Context) (time.Time, error) {
			if starting.Load() {
				return since, errors.New("the API server is not ready")
			}
			return since, nil
		}
		p := runPermits(t, z)
		a := callerNamed("a")
		permit := p.Open(a, watchPods(a, "x"))
		starting.Store(true)
		r.refuse("a")
		if v := z.Decide(t.Context(), a, watchPods(a, "y")); v.Refusal(watchPods(a, "y")).Code != 503 {
			t.Errorf("verdict %v", v)
		}
		time.Sleep(2 * time.Minute)
		if ended(permit) {
			t.Fatalf("ended: %v", permit.Refusal())
		}
		starting.Store(false)
		if v := z.Decide(t.Context(), a, watchPods(a, "y")); v.Refusal(watchPods(a, "y")).Code != 403 {
			t.Errorf("verdict %v", v)
		}
		time.Sleep(12 * time.Second) // the check is repeated soon
		if !ended(permit) || permit.Refusal().Code != 403 {
			t.Errorf("refusal: %v", permit.Refusal())
		}
	})
}

// TestDenialWhileBecomingReady: a denial does not count if the API server may have become
// ready only after it.
func TestDenialWhileBecomingReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		z := newTestAuthorizer(t, r)
		var since time.Time
		z.ready = func(context.Context) (time.Time, error) {
			if since.IsZero() {
				time.Sleep(time.Second) // it becomes ready
				since = time.Now()
				r.allow("a")
			}
			return since, nil
		}
		a, b := callerNamed("a"), callerNamed("b")
		r.refuse("a")
		r.refuse("b")
		if v := z.Decide(t.Context(), a, watchPods(a, "x")); !v.Allowed() || r.count("a") != 2 {
			t.Errorf("verdict %v", v)
		}
		if v := z.Decide(t.Context(), b, watchPods(b, "x")); v.Refusal(watchPods(b, "x")).Code != 403 || r.count("b") != 1 {
			t.Errorf("verdict %v", v)
		}
	})
}

// TestTokenExpires: a token is reviewed at its end, and again until the API server refuses
// it.
func TestTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := runPermits(t, newTestAuthorizer(t, newFakeAuthorizer()))
		a := callerNamed("a")
		a.Expires = time.Now().Add(30 * time.Second)
		gone := a.Expires.Add(time.Minute) // the API server's leeway
		a.again = func(context.Context) (upstream.Decision, string) {
			if time.Now().After(gone) {
				return upstream.Denied, "expired"
			}
			return upstream.Allowed, ""
		}
		permit := p.Open(a, watchPods(a, "x"))
		time.Sleep(88 * time.Second)
		if ended(permit) {
			t.Fatal("ended while the API server accepts the token")
		}
		time.Sleep(6 * time.Second)
		if !ended(permit) || permit.Refusal().Code != 401 {
			t.Errorf("refusal: %v", permit.Refusal())
		}
	})
}

// TestNoSecondChance: after a watch was refused, the cached decision that had allowed it is
// gone.
func TestNoSecondChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		z := newTestAuthorizer(t, r)
		p := runPermits(t, z)
		a := callerNamed("a")
		permit := p.Open(a, watchPods(a, "x"))
		time.Sleep(40 * time.Second)
		if !z.Decide(t.Context(), a, watchPods(a, "x")).Allowed() {
			t.Fatal("denied")
		}
		r.refuse("a")
		for !ended(permit) {
			if !z.Decide(t.Context(), a, watchPods(a, "x")).Allowed() {
				break // the cached decision expired first
			}
			time.Sleep(500 * time.Millisecond)
		}
		if v := z.Decide(t.Context(), a, watchPods(a, "x")); v.Allowed() {
			t.Error("the cached decision allows a revoked user")
		}
	})
}

// TestJoin: a permit ends with a right that it joined later, also one that was gone at that
// time already.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		p := runPermits(t, newTestAuthorizer(t, r))
		a, b := callerNamed("a"), callerNamed("b")
		one, two := p.Open(a, watchPods(a, "x")), p.Open(a, watchPods(a, "x"))
		one.Join(a, PathAttributes(b.User, "/at")) // b's attributes: the authorizer refuses users
		r.refuse("b")
		p.Hint(Hint{Subjects: []rbacv1.Subject{{Kind: "User", Name: "b"}}})
		time.Sleep(time.Second)
		if !ended(one) || ended(two) {
			t.Error("the permit does not depend on what it joined, or another one does")
		}
		one.Join(a, PathAttributes(a.User, "/at")) // has no effect
		two.Close()
		if n := p.Counts(); n != 0 {
			t.Errorf("%d rights are left", n)
		}
	})
}
