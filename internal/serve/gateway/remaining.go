// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A listPosition is a position in a list at an RV: before the first object whose key
// is at least key.
type listPosition struct {
	rv        uint64
	namespace string
	key       kube.Key
}

// A remainingCount remembers how many objects remain after the newest pages, so that
// the objects are counted once for a list and not for each of its pages. It is safe
// for concurrent use.
type remainingCount struct {
	mu    sync.Mutex // guards the fields below
	known [64]struct {
		after listPosition
		n     int64
	}
	next int // index in known to replace next
}

// after returns how many objects remain after a page of limit objects, which begins
// at start and ends before end. It counts them if need be.
func (c *remainingCount) after(start listPosition, limit int64, end listPosition, s Snapshot) (n int64, err error) {
	if n = c.lookup(start) - limit; n <= 0 { // unknown: after() is called only if some remain
		if n, err = s.Count(end.namespace, end.key); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[c.next].after, c.known[c.next].n = end, n
	c.next = (c.next + 1) % len(c.known)
	return n, nil
}

func (c *remainingCount) lookup(p listPosition) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.known {
		if c.known[i].after == p {
			return c.known[i].n
		}
	}
	return 0
}
