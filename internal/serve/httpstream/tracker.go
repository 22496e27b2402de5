// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// A Tracker counts the current requests and watches, and ends them when the gateway
// shuts down: streams when draining begins, other requests when the grace period is
// over. http.Server cannot do this, since it forgets hijacked connections. A Tracker
// is safe for concurrent use.
type Tracker struct {
	log *slog.Logger
	lag prometheus.Observer // seconds from the publication of an event to its write

	streams    context.Context // ends when draining begins
	endStreams context.CancelCauseFunc
	all        context.Context // ends when the grace period is over
	endAll     context.CancelCauseFunc

	mu     sync.Mutex    // guards the fields below
	active int           // requests between Enter and Leave, and watches
	none   chan struct{} // closed while active is 0
	// adopted are the watches. Their requests may have ended.
	adopted map[*Watch]struct{}
	drains  bool          // watches have to end
	spread  time.Duration // the time over which they end then
}

// NewTracker returns a tracker without requests.
func NewTracker(log *slog.Logger, lag prometheus.Observer) *Tracker {
	t := &Tracker{log: log, lag: lag, none: make(chan struct{}), adopted: map[*Watch]struct{}{}}
	t.streams, t.endStreams = context.WithCancelCause(context.Background())
	t.all, t.endAll = context.WithCancelCause(context.Background())
	close(t.none)
	return t
}

// Enter counts a request until Leave.
func (t *Tracker) Enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enterLocked()
}

func (t *Tracker) enterLocked() {
	if t.active == 0 {
		t.none = make(chan struct{})
	}
	t.active++
}

// Leave undoes an Enter.
func (t *Tracker) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked()
}

func (t *Tracker) leaveLocked() {
	if t.active--; t.active == 0 {
		close(t.none)
	}
}

// Active returns the number of current requests and watches. It is for tests.
func (t *Tracker) Active() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active
}

// adopt counts a watch until part. The watch may outlive its handler.
func (t *Tracker) adopt(s *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enterLocked()
	t.adopted[s] = struct{}{}
	switch {
	case t.all.Err() != nil:
		s.timer.cut()
	case t.drains:
		s.timer.drain(rand.N(t.spread + 1))
	}
}

func (t *Tracker) part(s *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.adopted, s)
	t.leaveLocked()
}

// Bind returns a context that also ends when the gateway ends requests of this kind:
// streams at Drain, other requests at Cut. It returns false if that has happened; the
// request must then be refused.
func (t *Tracker) Bind(ctx context.Context, stream bool) (context.Context, context.CancelFunc, bool) {
	end := t.all
	if stream {
		end = t.streams
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(end, func() { cancel(upstream.ErrShutdown) })
	return ctx, func() { stop(); cancel(nil) }, end.Err() == nil
}

// Drain ends the bound streams, and refuses new ones. Watches end at random times
// within the spread, each with a last bookmark, so that their clients do not reconnect
// all at once. Only the first call has an effect.
func (t *Tracker) Drain(spread time.Duration) {
	t.endStreams(upstream.ErrShutdown)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drains {
		return
	}
	t.drains, t.spread = true, spread
	for s := range t.adopted {
		s.timer.drain(rand.N(spread + 1))
	}
}

// Draining reports whether Drain was called.
func (t *Tracker) Draining() bool { return t.streams.Err() != nil }

// Cut ends all requests and watches at once.
func (t *Tracker) Cut() {
	t.endStreams(upstream.ErrShutdown)
	t.endAll(upstream.ErrShutdown)
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.adopted {
		s.timer.cut()
	}
}

// Idle returns a channel that is closed when no request or watch is left.
func (t *Tracker) Idle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.none
}
