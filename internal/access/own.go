// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package access decides what may be read from the cache and the history (T8):
// never what the API server would refuse now.
package access

import (
	"context"
	"net/http"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/request"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
)

const (
	// maxDecisionAge is how long a decision is used: what kube-apiserver's own
	// delegating authorizer keeps one for.
	maxDecisionAge = 10 * time.Second
	reviewTimeout  = 2 * time.Second
)

// Own knows what the gateway's own identity may read of a resource, in all
// namespaces (T8). That there is a timeline shows that the gateway could list and
// watch once; it does not show that it still may, nor that it may get. Own is safe
// for concurrent use.
type Own struct {
	up       *upstream.Server
	id       kube.Resource
	inflight *upstream.Inflight[upstream.Decision] // by the verb
	// asksAgain is set where a question that had no answer is asked again at once.
	asksAgain bool

	mu    sync.Mutex // guards known
	known map[request.Verb]decided
}

type decided struct {
	decision upstream.Decision
	at       time.Time
}

// NewOwn returns what is to be known of a resource.
func NewOwn(up *upstream.Server, id kube.Resource, b *upstream.Background) *Own {
	return &Own{up: up, id: id, inflight: upstream.NewInflight[upstream.Decision](b, reviewTimeout)}
}

// Allows reports whether reads may be served from the cache. When the API server
// does not answer, its last decision stays in force; without one, list and watch,
// which the reflector does, count as allowed.
func (o *Own) Allows(ctx context.Context, verb request.Verb) bool {
	d, err := o.decide(ctx, verb)
	return err == nil && (d == upstream.Allowed || d == upstream.Unknown && verb != request.Get)
}

// decide returns the API server's decision on the gateway, or its last one if it
// does not answer now. The error is that of a context, or of a gateway that shuts
// down.
func (o *Own) decide(ctx context.Context, verb request.Verb) (upstream.Decision, error) {
	last, ok := o.last(verb)
	if ok && time.Since(last.at) < maxDecisionAge && (last.decision != upstream.Unknown || !o.asksAgain) {
		return last.decision, nil
	}
	return o.inflight.Do(ctx, string(verb), func(ctx context.Context) (upstream.Decision, error) {
		d := o.review(ctx, authorizationv1.ResourceAttributes{Verb: string(verb)}, nil)
		if d == upstream.Unknown {
			d = last.decision
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.known == nil {
			o.known = map[request.Verb]decided{}
		}
		o.known[verb] = decided{d, time.Now()}
		return d, nil
	})
}

func (o *Own) last(verb request.Verb) (decided, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, ok := o.known[verb]
	return d, ok
}

// caller returns the API server's decision on a caller with credentials of their
// own. It is not remembered.
func (o *Own) caller(ctx context.Context, t request.Target, identity http.Header) upstream.Decision {
	namespace := t.Namespace
	if t.Resource.Group == "" && t.Resource.Name == "namespaces" {
		namespace = t.Name // as the API server has it
	}
	return o.review(ctx, authorizationv1.ResourceAttributes{Verb: string(t.Verb), Namespace: namespace, Name: t.Name}, identity)
}

func (o *Own) review(ctx context.Context, a authorizationv1.ResourceAttributes, identity http.Header) upstream.Decision {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	a.Group, a.Version, a.Resource = o.id.Group, o.id.Version, o.id.Name
	return o.up.Review(ctx, a, identity)
}
