// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// learnInterval is how often Past looks for recorded resources that have no decision
// yet.
const learnInterval = 2 * time.Second

// A Record is the part of the recorder that Past uses.
type Record interface {
	// Resources returns the recorded resources.
	Resources() []kube.Resource
	// Withholds reports whether the record of a resource must not be shown.
	Withholds(kube.Resource) bool
}

// Past decides which callers may read the past of a resource (T8). The record itself
// proves nothing: it may be a year old, and read with other credentials. So nothing
// is shown before the API server has decided once; after that its last decision
// stays in force while it does not answer, as for the cache. Past is safe for
// concurrent use.
type Past struct {
	up         *upstream.Server
	record     Record
	background *upstream.Background
	// Shared decides for callers in shared mode; nil in local mode.
	Shared *Shared
	// Server returns why the API server's decisions do not tell what callers may see of a
	// resource in shared mode, nil if they do.
	Server func(context.Context, kube.Resource) *metav1.Status

	mu    sync.Mutex // guards known
	known map[kube.Resource]*Own
}

// NewPast returns the access decisions for a record.
func NewPast(up *upstream.Server, record Record, b *upstream.Background) *Past {
	return &Past{up: up, record: record, background: b, known: map[kube.Resource]*Own{}}
}

// of returns the decisions for a resource. It is called for recorded resources only,
// which bounds the map.
func (p *Past) of(id kube.Resource) *Own {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.known[id]
	if own == nil {
		own = NewOwn(p.up, id, p.background)
		own.asksAgain = true
		p.known[id] = own
	}
	return own
}

// Decided reports whether the API server has allowed the gateway to list a recorded
// resource.
func (p *Past) Decided(id kube.Resource) bool {
	last, _ := p.of(id).last(request.List)
	return last.decision == upstream.Allowed
}

// Refusal returns why a request may not read the past of a target, nil if it may.
// A caller with credentials of its own must be allowed to read the target now. For
// other callers the gateway must be allowed the verb in all namespaces.
func (p *Past) Refusal(r *http.Request, t request.Target, verb request.Verb) *metav1.Status {
	own, name := p.of(t.Resource), t.Resource.GroupResource()
	if p.record.Withholds(t.Resource) {
		return status.Forbidden(fmt.Sprintf("%s were recorded before, and are not shown while watchkeeper runs without --record-secrets", name))
	}
	if c := CallerOf(r.Context()); c != nil {
		if refusal := p.Server(r.Context(), t.Resource); refusal != nil {
			return refusal
		}
		// Of a read below /at, the selectors count.
		a, err := AttributesOf(r, c.User)
		if err != nil || !Agrees(a, t) {
			a = TargetAttributes(c.User, t)
		}
		return p.Shared.Require(r.Context(), c, a)
	}
	who, where, decision := "the gateway", " in all namespaces", upstream.Unknown
	if caller := request.Identity(r.Header); caller != nil {
		who, where, verb = "the caller", "", t.Verb
		var unknown *metav1.Status // the caller, to the API server
		if decision, unknown = own.caller(r.Context(), t, caller); unknown != nil {
			return unknown
		}
	} else {
		decision = own.decidePast(r.Context(), verb)
		if last, _ := own.last(verb); decision == upstream.Denied && last.why != nil {
			return last.why
		}
	}
	switch decision {
	case upstream.Allowed:
		return nil
	case upstream.Denied:
		return status.Forbidden(fmt.Sprintf("%s may not %s %s%s now, so their past is not shown", who, verb, name, where))
	}
	return status.Unavailable(fmt.Sprintf("cannot check whether %s may %s %s%s now: the API server gave no decision", who, verb, name, where), true)
}

// Unauthorized returns the API server's answer to a caller whose credentials it does not
// accept, nil for other callers. Such a caller may read nothing; an answer about all that
// it may read would hide why.
func (p *Past) Unauthorized(r *http.Request) *metav1.Status {
	caller := request.Identity(r.Header)
	if p == nil || caller == nil || CallerOf(r.Context()) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	_, unknown := p.up.Review(ctx, authorizationv1.ResourceAttributes{Verb: string(request.List), Version: "v1", Resource: "pods"}, caller)
	return unknown
}

// decidePast is decide for the past. An identity that may list everything may read
// each object, so a decision on list counts for verbs that were not reviewed before
// the API server became unreachable.
func (o *Own) decidePast(ctx context.Context, verb request.Verb) upstream.Decision {
	if last, _ := o.last(verb); last.decision == upstream.Unknown && o.up.Silent() {
		return o.decideList(ctx)
	}
	d, err := o.decide(ctx, verb)
	if err == nil && d == upstream.Unknown && verb != request.List {
		return o.decideList(ctx)
	}
	return d
}

func (o *Own) decideList(ctx context.Context) upstream.Decision {
	d, _ := o.decide(ctx, request.List) // Unknown with an error
	return d
}

// Run asks, until ctx ends, whether the gateway may list each recorded resource, and
// stops asking once it has a decision. So the past can be shown even when the API
// server becomes unreachable before the first request.
func (p *Past) Run(ctx context.Context) {
	for ctx.Err() == nil {
		for _, id := range p.record.Resources() {
			own := p.of(id)
			if last, _ := own.last(request.List); last.decision == upstream.Unknown {
				_, _ = own.decide(ctx, request.List)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(learnInterval):
		}
	}
}
