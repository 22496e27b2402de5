// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// A servedState is the last discovery result for a watched resource. A resource that
// is not built in can be removed, or recreated with another scope or kind, and the
// server of an aggregated one can be unavailable, while its watch stays open or is
// reopened without an error.
type servedState struct {
	mu     sync.Mutex // guards what follows
	lists  int        // taken by the reflector before discovery was asked
	at     time.Time
	served bool
}

// Served reports whether the API server serves the resource with the scope and kind
// it was watched with, as of a number of lists and within the last ten seconds. If
// not, the resource is dropped, unless the API server has no discovery for it. While
// the API server does not answer, its last answer remains valid.
func (res *Resource) Served(ctx context.Context, lists int) bool {
	if res.ID.BuiltIn() {
		return true
	}
	s := &res.served
	s.mu.Lock()
	at, served, current := s.at, s.served, s.lists >= lists
	s.mu.Unlock()
	now := time.Now()
	notBefore := now
	if current {
		if notBefore = now.Add(-upstream.MaxDiscoveryAge); at.After(notBefore) {
			return served
		}
	}
	info, err := res.cache.opts.Discovery.Lookup(ctx, res.ID, notBefore)
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil && info.Namespaced == res.Info.Namespaced && info.Kind == res.Info.Kind:
		served = true
	case err == nil, errors.Is(err, upstream.ErrNoResource):
		res.log.Info("stopped watching: the resource has gone, or its scope or kind has changed")
		res.cache.drop(res)
		return false
	case errors.Is(err, upstream.ErrNoDiscovery):
		served = false // an error response, such as 503
	default:
		served = served && current
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists <= lists {
		s.lists, s.at, s.served = lists, now, served
	}
	return served
}
