// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// hintWindow is how long questions are asked again after a hint: the API server
	// authorizes from caches that lag behind its objects.
	hintWindow = 10 * time.Second
	// maxHints bounds the hints of one window that are told apart. Beyond them every
	// question is concerned.
	maxHints = 1000
)

// A Hint says that the rights of some users, or their credentials, may have changed. It
// is never a decision.
type Hint struct {
	// Subjects are the users concerned; nil for all.
	Subjects []rbacv1.Subject
	// Namespace is the one in which the rights hold; "" for all.
	Namespace string
	// Credentials is set if the credentials of the users are concerned, not their rights.
	Credentials bool
	// PodUID is the UID of the Pod to which the credentials are bound: "" for credentials of
	// any kind, [AnyPod] for those bound to a Pod.
	PodUID string
}

// AnyPod is the PodUID of a hint that concerns the credentials that are bound to a Pod.
const AnyPod = "*"

// concerns reports whether the answer to a question may have changed.
func (h *Hint) concerns(a authorizer.Attributes) bool {
	if h.Credentials || h.Namespace != "" && a.GetNamespace() != h.Namespace {
		return false
	}
	return h.concernsUser(a.GetUser())
}

// concernsCredential reports whether a credential of a user may have ended.
func (h *Hint) concernsCredential(u user.Info) bool {
	pods := u.GetExtra()[serviceaccount.PodUIDKey]
	if !h.Credentials || h.PodUID == AnyPod && len(pods) == 0 || h.PodUID != "" && h.PodUID != AnyPod && !slices.Contains(pods, h.PodUID) {
		return false
	}
	return h.concernsUser(u)
}

func (h *Hint) concernsUser(u user.Info) bool {
	if h.Subjects == nil {
		return true
	}
	return slices.ContainsFunc(h.Subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == u.GetName()
		case rbacv1.GroupKind:
			return slices.Contains(u.GetGroups(), s.Name)
		case rbacv1.ServiceAccountKind:
			// A RoleBinding may leave out its own namespace.
			return serviceaccount.MatchesUsername(cmp.Or(s.Namespace, h.Namespace), s.Name, u.GetName())
		}
		return false
	})
}

// hints has the hints of the last ten seconds, at rights or at credentials.
type hints struct {
	recent atomic.Pointer[[]timedHint] // oldest first
	given  atomic.Uint64               // the number of hints so far

	mu sync.Mutex // serializes writers
}

type timedHint struct {
	Hint
	number uint64 // from 1
	at     time.Time
}

func newHints() *hints {
	h := &hints{}
	h.recent.Store(&[]timedHint{})
	return h
}

// count returns the number of hints so far.
func (h *hints) count() uint64 { return h.given.Load() }

// add notes a hint.
func (h *hints) add(hint Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	var kept []timedHint
	for _, old := range *h.recent.Load() {
		if now.Sub(old.at) < hintWindow {
			kept = append(kept, old)
		}
	}
	if len(kept) >= maxHints {
		// Everybody is concerned, which replaces the others; but a thousand Pods are deleted by
		// the end of one large Job.
		all := Hint{Credentials: hint.Credentials}
		if hint.PodUID != "" && !slices.ContainsFunc(kept, func(h timedHint) bool { return h.PodUID == "" }) {
			all.PodUID = AnyPod
		}
		kept, hint = nil, all
	}
	number := h.given.Load() + 1
	kept = append(kept, timedHint{hint, number, now})
	h.recent.Store(&kept)
	h.given.Store(number)
}

// concern reports whether a hint after the first n ones concerns a question.
func (h *hints) concern(n uint64, a authorizer.Attributes) bool {
	return h.after(n, func(hint *Hint) bool { return hint.concerns(a) })
}

// concernCredential reports whether one after the first n concerns a credential of a user.
func (h *hints) concernCredential(n uint64, u user.Info) bool {
	return h.after(n, func(hint *Hint) bool { return hint.concernsCredential(u) })
}

func (h *hints) after(n uint64, concerns func(*Hint) bool) bool {
	if h.given.Load() == n {
		return false
	}
	for _, hint := range slices.Backward(*h.recent.Load()) {
		if hint.number <= n {
			break
		}
		if concerns(&hint.Hint) {
			return true
		}
	}
	return false
}

// until returns the end of the window of the last hint that concerns a question; the
// zero time if that has ended.
func (h *hints) until(a authorizer.Attributes) time.Time {
	return h.window(func(hint *Hint) bool { return hint.concerns(a) })
}

// untilCredential is until for a credential of a user.
func (h *hints) untilCredential(u user.Info) time.Time {
	return h.window(func(hint *Hint) bool { return hint.concernsCredential(u) })
}

func (h *hints) window(concerns func(*Hint) bool) time.Time {
	now := time.Now()
	for _, hint := range slices.Backward(*h.recent.Load()) {
		end := hint.at.Add(hintWindow)
		if end.Before(now) {
			break
		}
		if concerns(&hint.Hint) {
			return end
		}
	}
	return time.Time{}
}

// ttl returns how long an answer of now is used.
func (h *hints) ttl(a authorizer.Attributes) time.Duration {
	if h.until(a).IsZero() {
		return answerTTL
	}
	return hintedTTL
}
