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

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
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
	up    *Upstream
	id    kube.Resource
	asked shared[verdict]
	// strict is set where a question that had no answer is put again at once.
	strict bool

	mu    sync.Mutex // guards known
	known map[readVerb]decision
}

// A verdict is what the API server says of a read.
type verdict int

const (
	saysNothing verdict = iota
	saysNo
	saysYes
)

type decision struct {
	verdict verdict
	at      time.Time
}

// allows reports whether reads may be served from the cache. When the API
// server does not say, its last decision stands; without one, list and watch,
// which the reflector does, count as allowed.
func (a *access) allows(ctx context.Context, verb readVerb) bool {
	v, err := a.own(ctx, verb)
	return err == nil && (v == saysYes || v == saysNothing && verb != verbGet)
}

// own returns what the API server says of the gateway, or said last, if it does
// not say anything now. The error is that of a context, or of a gateway that ends.
func (a *access) own(ctx context.Context, verb readVerb) (verdict, error) {
	d, ok := a.last(verb)
	if ok && time.Since(d.at) < decisionFresh && (d.verdict != saysNothing || !a.strict) {
		return d.verdict, nil
	}
	return a.asked.get(ctx, string(verb), func(ctx context.Context) (verdict, error) {
		v := a.ask(ctx, authorizationv1.ResourceAttributes{Verb: string(verb)}, nil)
		if v == saysNothing {
			v = d.verdict
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.known == nil {
			a.known = map[readVerb]decision{}
		}
		a.known[verb] = decision{v, time.Now()}
		return v, nil
	})
}

func newAccess(up *Upstream, id kube.Resource, begin beginFunc) *access {
	return &access{up: up, id: id, asked: shared[verdict]{begin: begin, timeout: decisionTimeout}}
}

func (a *access) last(verb readVerb) (decision, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, ok := a.known[verb]
	return d, ok
}

// caller returns what the API server says of a caller with credentials of their
// own. Nothing of that is remembered.
func (a *access) caller(ctx context.Context, t target, own http.Header) verdict {
	namespace := t.namespace
	if t.resource.Group == "" && t.resource.Name == "namespaces" {
		namespace = t.name // as the API server has it
	}
	return a.ask(ctx, authorizationv1.ResourceAttributes{Verb: string(t.verb), Namespace: namespace, Name: t.name}, own)
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
// name of the caller, if there is one.
func (a *access) ask(ctx context.Context, what authorizationv1.ResourceAttributes, caller http.Header) verdict {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	what.Group, what.Version, what.Resource = a.id.Group, a.id.Version, a.id.Name
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	body, err := json.Marshal(review)
	if err != nil {
		return saysNothing
	}
	req := a.up.NewRequest(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "")
	req.Header.Set("Content-Type", "application/json")
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := a.up.as(caller, req)
	if err != nil {
		return saysNothing
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&review)
		switch {
		case err != nil:
			return saysNothing
		case review.Status.Allowed:
			return saysYes
		}
		return saysNo
	case http.StatusUnauthorized:
		return saysNo
	}
	return saysNothing
}

// as sends a request of the gateway's own in the name of a caller, by the headers
// that say who that is; nil is the gateway itself.
func (u *Upstream) as(caller http.Header, r *http.Request) (*http.Response, error) {
	maps.Copy(r.Header, caller)
	if bringsToken(caller) { // as in the passthrough
		return u.callers.RoundTrip(r)
	}
	return u.Transport.RoundTrip(r)
}
