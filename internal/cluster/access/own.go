// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package access decides whether a request may be served from the cache or the
// history (T8): by the API server's decision of the last seconds, or its last one while
// it does not answer.
package access

import (
	"context"
	"net/http"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

const (
	// maxDecisionAge is how long a decision is used; kube-apiserver's delegating
	// authorizer caches its decisions for as long.
	maxDecisionAge = 10 * time.Second
	reviewTimeout  = 2 * time.Second
)

// Own caches what the gateway's own identity may read of a resource, in all
// namespaces (T8). A timeline proves only that the gateway was allowed to list and
// watch when it began; it does not prove that it is allowed now, or that it may get.
// Own is safe for concurrent use.
type Own struct {
	up       *upstream.Server
	id       kube.Resource
	inflight *upstream.Inflight[upstream.Decision] // by the verb
	// asksAgain is set if a review that had no answer is repeated at once.
	asksAgain bool

	mu    sync.Mutex // guards known
	known map[request.Verb]decided
}

type decided struct {
	decision upstream.Decision
	why      *metav1.Status // if the API server does not accept the gateway's credentials
	at       time.Time
}

// NewOwn returns an Own for a resource, without any decision.
func NewOwn(up *upstream.Server, id kube.Resource, b *upstream.Background) *Own {
	return &Own{up: up, id: id, inflight: upstream.NewInflight[upstream.Decision](b, reviewTimeout)}
}

// Allows reports whether reads may be served from the cache. While the API server
// does not answer, its last decision stays in force. Without a decision, list and
// watch count as allowed, since the reflector does both.
func (o *Own) Allows(ctx context.Context, verb request.Verb) bool {
	d, err := o.decide(ctx, verb)
	return err == nil && (d == upstream.Allowed || d == upstream.Unknown && verb != request.Get)
}

// decide returns the API server's decision on the gateway, or the last one if the
// API server does not answer now. It fails if ctx ends or the gateway shuts down.
func (o *Own) decide(ctx context.Context, verb request.Verb) (upstream.Decision, error) {
	last, ok := o.last(verb)
	if ok && time.Since(last.at) < maxDecisionAge && (last.decision != upstream.Unknown || !o.asksAgain) {
		return last.decision, nil
	}
	if last.decision != upstream.Unknown && o.up.Silent() {
		return last.decision, nil
	}
	return o.inflight.Do(ctx, string(verb), func(ctx context.Context) (upstream.Decision, error) {
		d, why := o.review(ctx, authorizationv1.ResourceAttributes{Verb: string(verb)}, nil)
		if d == upstream.Unknown {
			d, why = last.decision, last.why
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.known == nil {
			o.known = map[request.Verb]decided{}
		}
		o.known[verb] = decided{d, why, time.Now()}
		return d, nil
	})
}

func (o *Own) last(verb request.Verb) (decided, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, ok := o.known[verb]
	return d, ok
}

// caller returns the API server's decision on a caller that has credentials of its
// own, and its answer if it does not accept them. It is not cached.
func (o *Own) caller(ctx context.Context, t request.Target, identity http.Header) (upstream.Decision, *metav1.Status) {
	return o.review(ctx, authorizationv1.ResourceAttributes{Verb: string(t.Verb), Namespace: namespaceOf(t), Name: t.Name}, identity)
}

func (o *Own) review(ctx context.Context, a authorizationv1.ResourceAttributes, identity http.Header) (upstream.Decision, *metav1.Status) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	a.Group, a.Version, a.Resource = o.id.Group, o.id.Version, o.id.Name
	return o.up.Review(ctx, a, identity)
}
