// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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
		allowed, known := a.ask(ctx, verb)
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

// ask puts the question to the API server, as a SelfSubjectAccessReview. known
// is false when it gives no decision.
func (a *access) ask(ctx context.Context, verb readVerb) (allowed, known bool) {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: string(verb), Group: a.id.Group, Version: a.id.Version, Resource: a.id.Name,
		},
	}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	body, err := json.Marshal(review)
	if err != nil {
		return false, false
	}
	req := a.up.NewRequest(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "")
	req.Header.Set("Content-Type", "application/json")
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := a.up.Transport.RoundTrip(req)
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
