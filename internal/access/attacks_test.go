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

	"github.com/watchkeeper/watchkeeper/internal/upstream"
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
