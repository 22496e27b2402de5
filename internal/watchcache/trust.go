// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/informer"
)

// A trust says whether the upstream's history may be another one than the sink's, as
// after a restore of etcd. What is passed through is of the upstream's history, and a
// timeline with another one may have its RVs: a client that lists at the API server must
// not continue with a watch of that timeline.
//
//	         the watch broke off       an answer was passed through
//	trusted ─────────────────────▶ doubtful ─────────────────────▶ suspect
//	   ▲                              │                               │
//	   ├── proven, listed ────────────┴───────────────────────────────┤
//	   └── listed ── diverged ◀── another history ────────────────────┘
//
// While doubtful, reads are served: the API server may be unreachable, and then no client
// has anything of another history.
type trust int32

const (
	trusted trust = iota
	doubtful
	suspect
	diverged
)

// An atomicTrust is a trust that any goroutine may use.
type atomicTrust struct{ v atomic.Int32 }

func (a *atomicTrust) is(t trust) bool { return trust(a.v.Load()) == t }

// move changes from to to, and does nothing in another state.
func (a *atomicTrust) move(from, to trust) { a.v.CompareAndSwap(int32(from), int32(to)) }

// learn takes what the reflector knows.
func (a *atomicTrust) learn(c informer.Continuity) {
	switch c {
	case informer.Doubtful:
		a.move(trusted, doubtful)
	case informer.Diverged:
		a.v.Store(int32(diverged))
	case informer.Proven:
		a.move(doubtful, trusted)
		a.move(suspect, trusted)
	}
}

// passed is called before a client gets an answer of the upstream.
func (a *atomicTrust) passed() { a.move(doubtful, suspect) }

// listed is called when the sink has taken a list.
func (a *atomicTrust) listed() { a.v.Store(int32(trusted)) }

// servable reports whether reads may be served from the sink's history.
func (a *atomicTrust) servable() bool { return a.is(trusted) || a.is(doubtful) }
