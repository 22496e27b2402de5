// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A reachable is an upstream for a reacher. A proof takes a second.
type reachable struct {
	reacher
	background *upstream.Background
	rv, at     atomic.Uint64 // of the upstream and of the timeline
	fails      atomic.Bool
	phase      atomic.Value // a reflector.Phase
	watches    atomic.Int64
	proofs     atomic.Int64
}

func newReachable(t *testing.T) *reachable {
	r := &reachable{background: upstream.NewBackground()}
	t.Cleanup(r.background.Stop)
	r.at.Store(10)
	r.rv.Store(20)
	r.watches.Store(1)
	r.phase.Store(reflector.Watching)
	r.reacher = reacher{
		head: r.at.Load, needed: func() bool { return r.watches.Load() > 0 },
		status: func() reflector.Status { return reflector.Status{Phase: r.phase.Load().(reflector.Phase)} },
		fresh: func(ctx context.Context) (*timeline.View, error) {
			r.proofs.Add(1)
			rv := r.rv.Load() // what comes later is not included
			if time.Sleep(time.Second); r.fails.Load() {
				return nil, errNoProof
			}
			r.at.Store(rv)
			v := &timeline.View{}
			v.RV = rv
			return v, ctx.Err()
		},
	}
	return r
}

func (r *reachable) ask(rv uint64) { r.want(rv, r.background.Begin) }

// settles checks that after a time there were so many proofs since the last call, and where
// the head is.
func (r *reachable) settles(t *testing.T, what string, after time.Duration, proofs int64, head uint64) {
	t.Helper()
	time.Sleep(after)
	if n, at := r.proofs.Swap(0), r.at.Load(); n != proofs || at != head {
		t.Errorf("%s: %d proofs, and the head is at %d; want %d, %d", what, n, at, proofs, head)
	}
}

// TestReach: proofs are shared, come one at a time, and end with the one that succeeds.
func TestReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReachable(t)
		r.ask(10)
		r.settles(t, "the head", time.Hour, 0, 10)
		for range 100 {
			r.ask(15)
			r.ask(20)
		}
		r.settles(t, "many", time.Hour, 1, 20)

		r.rv.Store(30)
		r.ask(30)
		time.Sleep(100 * time.Millisecond)
		r.rv.Store(40)
		r.ask(35) // too late for the proof that runs
		r.ask(40)
		r.settles(t, "one after the other", 2*time.Second, 2, 40)

		r.ask(1000)
		r.settles(t, "an RV of another cluster", time.Hour, 1, 40)
		for range 60 {
			r.ask(1000)
			time.Sleep(time.Second)
		}
		r.settles(t, "again and again", time.Hour, 10, 40) // every seven seconds
	})
}

// TestReachFails: while no proof succeeds, it is tried again, after growing pauses, as long
// as there are watches.
func TestReachFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReachable(t)
		r.fails.Store(true)
		r.ask(20)
		r.settles(t, "failures", 2*time.Minute, 5, 10) // after 0, 7, 20, 45 and 94 seconds
		r.fails.Store(false)
		r.settles(t, "it succeeds", 2*time.Minute, 1, 20)

		r.rv.Store(30)
		r.phase.Store(reflector.Retrying)
		r.ask(30)
		r.settles(t, "the API server does not answer", time.Hour, 0, 20)
		r.phase.Store(reflector.Watching)
		r.settles(t, "it answers", 3*time.Second, 1, 30)

		r.rv.Store(40)
		r.fails.Store(true)
		r.watches.Store(0)
		r.ask(40)
		r.settles(t, "without watches", time.Hour, 1, 30)
	})
}
