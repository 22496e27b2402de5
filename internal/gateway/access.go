// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

const (
	// decisionFresh is how long a decision stands: what kube-apiserver's own
	// delegating authorizer keeps one for.
	decisionFresh   = 10 * time.Second
	decisionTimeout = 2 * time.Second
)

// access knows what the gateway's own identity may read of a resource, over
// all namespaces (T8). That there is a timeline shows that it once could list
// and watch; it does not show that it still may, nor that it may get.
type access struct {
	up     *Upstream
	id     kube.Resource
	begin  beginFunc
	flight singleflight.Group

	mu    sync.Mutex // guards known
	known map[readVerb]decision
}

type decision struct {
	allowed bool
	at      time.Time
}

// allows reports whether reads may be served from the cache. When the API
// server does not say, its last decision stands; without one, list and watch,
// which the reflector does, count as allowed.
func (a *access) allows(ctx context.Context, verb readVerb) bool {
	d, decided := a.last(verb)
	if decided && time.Since(d.at) < decisionFresh {
		return d.allowed
	}
	answer := a.flight.DoChan(string(verb), func() (any, error) {
		ctx, end, ok := a.begin()
		if !ok {
			return false, nil
		}
		defer end()
		allowed, known := a.ask(ctx, authorizationv1.ResourceAttributes{Verb: string(verb)}, nil)
		if !known {
			if allowed = verb != verbGet; decided {
				allowed = d.allowed
			}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.known == nil {
			a.known = map[readVerb]decision{}
		}
		a.known[verb] = decision{allowed, time.Now()}
		return allowed, nil
	})
	select {
	case res := <-answer:
		return res.Val.(bool)
	case <-ctx.Done():
		return false
	}
}

func (a *access) last(verb readVerb) (decision, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, ok := a.known[verb]
	return d, ok
}

// allowsCaller reports whether a caller with credentials of their own may do what
// they ask for. Nothing of that is remembered.
func (a *access) allowsCaller(ctx context.Context, rd *read, caller http.Header) bool {
	allowed, known := a.ask(ctx, authorizationv1.ResourceAttributes{Verb: string(rd.verb), Namespace: rd.namespace, Name: rd.name}, caller)
	return allowed && known
}

// identity returns the headers that say who the caller is, nil if they do not say.
func identity(h http.Header) (own http.Header) {
	for name, values := range h {
		if isIdentity(name) {
			if own == nil {
				own = http.Header{}
			}
			own[name] = values
		}
	}
	return own
}

// ask puts the question to the API server, as a SelfSubjectAccessReview: in the
// name of the caller, if there is one. known is false when it gives no decision.
func (a *access) ask(ctx context.Context, what authorizationv1.ResourceAttributes, caller http.Header) (allowed, known bool) {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	what.Group, what.Version, what.Resource = a.id.Group, a.id.Version, a.id.Name
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	body, err := json.Marshal(review)
	if err != nil {
		return false, false
	}
	req := a.up.NewRequest(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "")
	req.Header.Set("Content-Type", "application/json")
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	transport := a.up.Transport
	if bringsToken(caller) { // as in the passthrough
		transport = a.up.callers
	}
	maps.Copy(req.Header, caller)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false, false
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&review)
		return review.Status.Allowed, err == nil
	case http.StatusUnauthorized:
		return false, true
	}
	return false, false
}
