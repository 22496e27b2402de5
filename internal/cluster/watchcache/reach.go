// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

const (
	// reachPause is how long no proof is tried for watches above the head after one that
	// did not help them. It is longer than proofPause. After failures in a row it grows to
	// maxReachPause.
	reachPause    = 6 * time.Second
	maxReachPause = time.Minute
	// watchingPause is how long no proof is tried while the reflector does not watch: it
	// could not succeed. For a moment after a list, the reflector does not watch yet.
	watchingPause = time.Second
)

// A reacher moves the head to where clients begin to watch. The head of a resource without
// changes stays behind the upstream's RV until the next bookmark, which may be a minute away,
// while the lists that are passed through have that RV. If the upstream lost its history
// meanwhile, the RV would be inside a gap, and the watch would end. A proof of freshness moves
// the head past it in about a second.
//
// All watches above the head share the proofs, of which there is one at a time. One that
// succeeds is the last for the RVs that were wanted when it began: an RV that it has not
// reached is none of the upstream's.
type reacher struct {
	fresh  func(context.Context) (*timeline.View, error)
	head   func() uint64
	status func() reflector.Status
	// needed reports whether there are watches.
	needed func() bool

	mu      sync.Mutex // guards what follows
	wanted  uint64     // the highest RV wanted since the last proof began
	running bool
}

// want makes the head reach an RV in the background, if the upstream has reached it.
func (r *reacher) want(rv uint64, begin func() (ctx context.Context, end func(), ok bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wanted = max(r.wanted, rv); r.running {
		return
	}
	ctx, end, ok := begin()
	if !ok {
		return
	}
	r.running = true
	go func() {
		defer end()
		r.run(ctx)
	}()
}

// run runs proofs while there are RVs to reach.
func (r *reacher) run(ctx context.Context) {
	pause := reachPause
	for rv := r.next(); rv > 0; rv = r.next() {
		wait := time.Duration(0)
		if r.status().Phase != reflector.Watching {
			wait = watchingPause
			r.again(rv)
		} else if v, err := r.fresh(ctx); err != nil {
			wait, pause = pause, min(2*pause, maxReachPause)
			r.again(rv)
		} else if pause = reachPause; v.RV < rv {
			wait = pause
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// next returns the RV to reach now. It returns 0 if there is none, and run has to end.
func (r *reacher) next() (rv uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rv, r.wanted = r.wanted, 0; rv <= r.head() {
		r.running = false
		return 0
	}
	return rv
}

// again keeps an RV wanted while there are watches.
func (r *reacher) again(rv uint64) {
	if !r.needed() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = max(r.wanted, rv)
}

// Reach is called when a watch begins above the head. It makes the head reach its RV soon, if
// a proof of freshness can, so that the watch outlives a loss of the upstream's history. Reach
// does not wait.
func (res *Resource) Reach(rv uint64) {
	if res.ID.Uncached() { // no bookmark comes in time for a proof
		return
	}
	res.reacher.want(rv, res.cache.opts.Background.Begin)
}
