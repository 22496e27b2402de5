// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package accessapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

const (
	// maxDecisionAge is how long a decision is used; kube-apiserver's delegating
	// authorizer caches its decisions for as long.
	maxDecisionAge = 10 * time.Second
	reviewTimeout  = 2 * time.Second
	// maxDecisions bounds the decisions kept.
	maxDecisions = 20_000
)

// SelfReviews is the [Reviewer] of the local mode: the API server reviews the caller with
// the credentials of the request, or the gateway if the request has none, with
// SelfSubjectAccessReviews. It is safe for concurrent use.
type SelfReviews struct {
	up       *upstream.Server
	inflight *upstream.Inflight[bool] // by the key
	known    *cache.LRUExpireCache    // key to bool
}

// A key is the hash of the caller's credentials and of the attributes: no credentials
// are kept.
type key [sha256.Size]byte

// NewSelfReviews returns a reviewer that has no decision yet.
func NewSelfReviews(up *upstream.Server, b *upstream.Background) *SelfReviews {
	return &SelfReviews{up: up, inflight: upstream.NewInflight[bool](b, reviewTimeout), known: cache.NewLRUExpireCache(maxDecisions)}
}

// Allowed implements Reviewer. Reasons are not kept.
func (s *SelfReviews) Allowed(r *http.Request, a authorizationv1.ResourceAttributes) (allowed bool, reason string, err error) {
	caller := request.Identity(r.Header)
	k, err := keyOf(caller, a)
	if err != nil {
		return false, "", err
	}
	if known, ok := s.known.Get(k); ok {
		return known.(bool), "", nil
	}
	allowed, err = s.inflight.Do(r.Context(), string(k[:]), func(ctx context.Context) (bool, error) {
		decision, unknown := s.up.Review(ctx, a, caller)
		switch {
		case unknown != nil:
			return false, &status.Error{Status: unknown}
		case decision == upstream.Unknown:
			return false, fmt.Errorf("cannot check who may %s %s: the API server gave no decision", a.Verb, a.Resource)
		}
		s.known.Add(k, decision == upstream.Allowed, maxDecisionAge)
		return decision == upstream.Allowed, nil
	})
	return allowed, "", err
}

func keyOf(caller http.Header, a authorizationv1.ResourceAttributes) (k key, err error) {
	hash := sha256.New()
	enc := json.NewEncoder(hash) // unlike the plain texts, it cannot be ambiguous
	for _, name := range slices.Sorted(maps.Keys(caller)) {
		if err := enc.Encode(append([]string{name}, caller[name]...)); err != nil {
			return k, err
		}
	}
	if err := enc.Encode(a); err != nil {
		return k, err
	}
	return key(hash.Sum(nil)), nil
}
