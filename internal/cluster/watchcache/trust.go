// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
)

// A Trust says whether the upstream's history may be another one than the sink's, as
// after a restore of etcd. What is passed through is of the upstream's history, and a
// timeline with another one may have its RVs: a client that lists at the API server must
// not continue with a watch of that timeline.
//
//	         the watch broke off       an answer was passed through
//	Trusted ─────────────────────▶ Doubtful ─────────────────────▶ Suspect
//	   ▲                              │                               │
//	   ├── proven, listed ────────────┴───────────────────────────────┤
//	   └── listed ── Diverged ◀── another history ────────────────────┘
//
// While Doubtful, reads are served: the API server may be unreachable, and then no client
// has anything of another history.
type Trust int32

// The states of a Trust.
const (
	Trusted Trust = iota
	Doubtful
	Suspect
	Diverged
)

// serves reports whether reads may be served from the sink's history.
func (t Trust) serves() bool { return t == Trusted || t == Doubtful }

// An atomicTrust is a Trust that any goroutine may use.
type atomicTrust struct{ v atomic.Int32 }

func (a *atomicTrust) get() Trust { return Trust(a.v.Load()) }

// move changes from to to, and does nothing in another state.
func (a *atomicTrust) move(from, to Trust) { a.v.CompareAndSwap(int32(from), int32(to)) }

// learn takes what the reflector knows.
func (a *atomicTrust) learn(c reflector.Continuity) {
	switch c {
	case reflector.Doubtful:
		a.move(Trusted, Doubtful)
	case reflector.Diverged:
		a.v.Store(int32(Diverged))
	case reflector.Proven:
		a.move(Doubtful, Trusted)
		a.move(Suspect, Trusted)
	}
}

// passed is called before a client gets an answer of the upstream.
func (a *atomicTrust) passed() { a.move(Doubtful, Suspect) }

// listed is called when the sink has taken a list.
func (a *atomicTrust) listed() { a.v.Store(int32(Trusted)) }
