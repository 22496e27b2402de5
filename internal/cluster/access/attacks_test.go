// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// TestHintBeforeTheWatch: a token that is cached may open a watch just after its
// ServiceAccount was deleted. The watch ends as one does that was open before.
func TestHintBeforeTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := runPermits(t, newTestAuthorizer(t, newFakeAuthorizer()))
		deleted, other := callerNamed("system:serviceaccount:x:a"), callerNamed("system:serviceaccount:x:b")
		deleted.again = func(context.Context) (upstream.Decision, string) { return upstream.Denied, "deleted" }
		var asked atomic.Int32
		other.again = func(context.Context) (upstream.Decision, string) { asked.Add(1); return upstream.Allowed, "" }
		p.Hint(Hint{Credentials: true, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "x", Name: "a"}}})
		time.Sleep(time.Second)
		one, two := p.Open(deleted, watchPods(deleted, "x")), p.Open(other, watchPods(other, "x"))
		time.Sleep(hintWindow)
		if !ended(one) {
			t.Error("the watch of a deleted ServiceAccount goes on")
		}
		if ended(two) || asked.Load() != 0 {
			t.Error("the hint concerned another ServiceAccount")
		}
	})
}

// TestCredentialHintsKeepDecisions: many deleted Pods and ServiceAccounts change no rights,
// so that decisions stay cached.
func TestCredentialHintsKeepDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		z := newTestAuthorizer(t, r)
		p := runPermits(t, z)
		a := callerNamed("a")
		z.Decide(t.Context(), a, watchPods(a, "x"))
		for range maxHints + 1 {
			p.Hint(Hint{Credentials: true, PodUID: "u"})
		}
		z.Decide(t.Context(), a, watchPods(a, "x"))
		if n := r.count("a"); n != 1 {
			t.Errorf("%d reviews, want 1", n)
		}
	})
}

// TestManyDeletedPods: many deleted Pods concern the tokens that are bound to one, and no
// others.
func TestManyDeletedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // as TestManyHints
		h := newHints()
		bound := &user.DefaultInfo{Name: "a", Extra: map[string][]string{serviceaccount.PodUIDKey: {"of-a"}}}
		before := h.count()
		for range 2 * maxHints {
			h.add(Hint{Credentials: true, PodUID: "u"})
		}
		if h.concernCredential(before, &user.DefaultInfo{Name: "b"}) {
			t.Error("a token that is bound to no Pod is concerned")
		}
		if !h.concernCredential(before, bound) {
			t.Error("what was forgotten concerns nobody")
		}
		if n := len(*h.recent.Load()); n > maxHints {
			t.Errorf("%d hints are kept", n)
		}
		h.add(Hint{Credentials: true, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "x", Name: "c"}}})
		for range maxHints {
			h.add(Hint{Credentials: true, PodUID: "u"})
		}
		if !h.concernCredential(before, &user.DefaultInfo{Name: "system:serviceaccount:x:c"}) {
			t.Error("the hint at a ServiceAccount is lost")
		}
	})
}

// TestOrderOfGroups: the order in which an authenticator has a user's groups is no other user.
func TestOrderOfGroups(t *testing.T) {
	one, two := userKey(&user.DefaultInfo{Name: "a", Groups: []string{"x", "y"}}), userKey(&user.DefaultInfo{Name: "a", Groups: []string{"y", "x"}})
	if one != two || one == userKey(&user.DefaultInfo{Name: "a", Groups: []string{"x"}}) {
		t.Errorf("%q and %q", one, two)
	}
}
