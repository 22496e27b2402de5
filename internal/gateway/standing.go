// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A standing is what discovery last said of a resource that is being watched.
// Those that are not the API server's own can go, or come back with another
// scope or kind, and the server behind an aggregated one can be out of service,
// while their watch still stands or is opened again as if nothing had happened.
type standing struct {
	mu         sync.Mutex // guards what follows
	generation int        // of the lists that it was asked after
	at         time.Time
	served     bool
}

// stands reports whether the resource still is what it was when it began to be
// watched, as of a generation of its lists and within the last ten seconds. If
// it is not, it is not watched any more. While nobody answers, the API server's
// last word stands.
func (c *cache) stands(ctx context.Context, res *resource, generation int) bool {
	if res.id.BuiltIn() {
		return true
	}
	s := &res.standing
	s.mu.Lock()
	at, served, current := s.at, s.served, s.generation >= generation
	s.mu.Unlock()
	now := time.Now()
	notBefore := now
	if current {
		if notBefore = now.Add(-discoveryFresh); at.After(notBefore) {
			return served
		}
	}
	info, err := c.discovery.lookup(ctx, res.id, notBefore)
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil && info.Namespaced == res.info.Namespaced && info.Kind == res.info.Kind:
		served = true
	case err == nil, errors.Is(err, errNoResource):
		c.log.Info("not watched any more: it has gone, or has become another", "resource", res.id.String())
		c.drop(res)
		return false
	case errors.Is(err, errNoDiscovery):
		served = false // an answer, such as 503
	default:
		served = served && current
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation <= generation {
		s.generation, s.at, s.served = generation, now, served
	}
	return served
}
