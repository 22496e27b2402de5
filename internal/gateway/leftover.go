// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A place is one in a list at an RV.
type place struct {
	rv        uint64
	namespace string
	key       kube.Key
}

// A leftover remembers how many objects are behind the ends of the newest pages,
// so that the objects are counted once for a list and not for each of its pages.
// It is safe for concurrent use.
type leftover struct {
	mu    sync.Mutex
	known [64]struct {
		behind place
		n      int64
	}
	next int // of known, to be replaced
}

// after returns how many objects are behind a page of so many, which begins at
// one place and ends at another. They are counted if need be.
func (l *leftover) after(start place, limit int64, end place, s state) int64 {
	n := l.behind(start) - limit
	if n <= 0 { // it is not known: there are some
		n = count(s, end)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[l.next].behind, l.known[l.next].n = end, n
	l.next = (l.next + 1) % len(l.known)
	return n
}

func (l *leftover) behind(p place) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.known {
		if l.known[i].behind == p {
			return l.known[i].n
		}
	}
	return 0
}

// count counts the objects behind a place.
func count(s state, behind place) (n int64) {
	if past, ok := s.(*pastState); ok {
		return past.count(behind.namespace, behind.key)
	}
	for range s.All(behind.namespace, behind.key) {
		n++
	}
	return n
}
