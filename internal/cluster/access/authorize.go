// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// maxQuestion bounds the size of a question that is cached, in bytes, as in the API
// server's delegating authorizer: selectors can be long.
const maxQuestion = 10000

// The bounds of SubjectAccessReviews. A user causes one by each question that is not cached,
// such as one about another selector. So users take turns, and none has more than a part of
// the slots. A question that cannot wait has no answer: most requests are passed through
// then, and the API server bounds the user's by its own priority and fairness. The reviews
// of open watches (Permits) have no bound here.
const (
	maxQuestionsPerUser        = 16
	maxWaitingQuestionsPerUser = 1024 // those about the namespaces of a large cluster
	maxWaitingQuestions        = 8192
)

func newQuestions() *fairness.Queue {
	return fairness.NewQueue(fairness.QueueOptions{
		Slots: maxReviews, PerKey: maxQuestionsPerUser, Wait: -1,
		MaxWaiting: maxWaitingQuestionsPerUser, MaxAllWaiting: maxWaitingQuestions,
	})
}

// maxReviewsOfOne bounds how often one question is asked again because the API server may
// have started since.
const maxReviewsOfOne = 3

// A Verdict is the API server's answer to a SubjectAccessReview.
type Verdict struct {
	Decision upstream.Decision // Unknown: there was no answer
	Reason   string            // the authorizer's reason, or why there was no answer
}

// Allowed reports whether the request may be answered.
func (v Verdict) Allowed() bool { return v.Decision == upstream.Allowed }

// Refusal returns the API server's status for a request that a verdict does not allow. It is
// that of ForbiddenStatusError in k8s.io/apiserver, a package that imports half of the server.
func (v Verdict) Refusal(a authorizer.Attributes) *metav1.Status {
	if v.Decision == upstream.Unknown {
		return status.Unavailable(fmt.Sprintf("the API server gave no decision on whether user %q may %s this: %s",
			a.GetUser().GetName(), a.GetVerb(), v.Reason), true)
	}
	what := fmt.Sprintf("path %q", a.GetPath())
	if a.IsResourceRequest() {
		resource := a.GetResource()
		if a.GetSubresource() != "" {
			resource += "/" + a.GetSubresource()
		}
		what = fmt.Sprintf("resource %q in API group %q at the cluster scope", resource, a.GetAPIGroup())
		if a.GetNamespace() != "" {
			what = fmt.Sprintf("resource %q in API group %q in the namespace %q", resource, a.GetAPIGroup(), a.GetNamespace())
		}
	}
	text := noHTML.Replace(fmt.Sprintf("User %q cannot %s %s", a.GetUser().GetName(), a.GetVerb(), what))
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	of := schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}
	refusal := apierrors.NewForbidden(of, a.GetName(), errors.New(text)).ErrStatus
	return &refusal
}

// noHTML keeps what a caller chose from looking like HTML, as in the API server.
var noHTML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// An Authorizer asks the API server what callers may do, and caches its answers for ten
// seconds. It is safe for concurrent use.
type Authorizer struct {
	review   authorizer.Authorizer                    // without a cache
	ready    func(context.Context) (time.Time, error) // since when the API server is ready, or why not; nil for no check
	inflight *upstream.Inflight[Verdict]
	known    *cache.LRUExpireCache // question to decision
	hints    *hints
	asked    *fairness.Queue // by user
}

// A question is what one user wants to do.
type question struct{ user, what string }

// A decision is a verdict, and the hints that came before it.
type decision struct {
	verdict Verdict
	hints   uint64
}

// newAuthorizer returns an authorizer that caches up to cacheSize answers.
func newAuthorizer(review authorizer.Authorizer, cacheSize int, b *upstream.Background) *Authorizer {
	return &Authorizer{
		review: review, inflight: upstream.NewInflight[Verdict](b, ReviewTimeout),
		known: cache.NewLRUExpireCache(cacheSize), hints: newHints(), asked: newQuestions(),
	}
}

// Decide returns the API server's verdict on attributes of a caller, not older than ten
// seconds.
func (z *Authorizer) Decide(ctx context.Context, c *Caller, a *authorizer.AttributesRecord) Verdict {
	q := question{c.userKey, questionKey(a)}
	if v, ok := z.cached(q, a); ok {
		return v
	}
	verdict, err := z.inflight.Do(ctx, q.user+"?"+q.what, func(ctx context.Context) (Verdict, error) {
		if v, ok := z.cached(q, a); ok { // asked meanwhile
			return v, nil
		}
		slot, err := z.asked.Acquire(ctx, c.User.GetName())
		if err != nil {
			return Verdict{}, err
		}
		defer slot.Release()
		before := z.hints.count()
		v := z.ask(ctx, a)
		if ttl := z.hints.ttl(a); v.Decision != upstream.Unknown && len(q.user)+len(q.what) < maxQuestion {
			z.known.Add(q, decision{v, before}, ttl)
		}
		return v, nil
	})
	if err != nil {
		return Verdict{upstream.Unknown, upstream.Cause(err)}
	}
	return verdict
}

// cached returns the cached answer to a question.
func (z *Authorizer) cached(q question, a *authorizer.AttributesRecord) (Verdict, bool) {
	known, ok := z.known.Get(q)
	if !ok {
		return Verdict{}, false
	}
	d := known.(decision)
	return d.verdict, !z.hints.concern(d.hints, a)
}

// ask asks the API server.
func (z *Authorizer) ask(ctx context.Context, a authorizer.Attributes) Verdict {
	for range maxReviewsOfOne {
		asked := time.Now()
		d, reason, err := z.review.Authorize(ctx, a)
		switch {
		case d == authorizer.DecisionAllow:
			return Verdict{upstream.Allowed, reason}
		case err != nil:
			return Verdict{upstream.Unknown, upstream.Cause(err)}
		case z.ready == nil:
			return Verdict{upstream.Denied, reason}
		}
		// An API server that starts does not know RBAC yet, and denies what it allows later.
		// If it has become ready meanwhile, only its next answer counts.
		since, err := z.ready(ctx)
		if err != nil {
			return Verdict{upstream.Unknown, upstream.Cause(err)}
		}
		if !since.After(asked) {
			return Verdict{upstream.Denied, reason}
		}
	}
	return Verdict{upstream.Unknown, "connections to the API server break"}
}

// refused notes that a later review contradicts an answer.
func (z *Authorizer) refused(q question) { z.known.Remove(q) }

// answerTTL is how long an answer is used.
const answerTTL = maxDecisionAge

// hintedTTL is how long an answer is used that came so soon after a hint that an API
// server may not have known of the change.
const hintedTTL = time.Second
