// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
)

// requestTracker knows the requests under way and ends them when the gateway
// stops: streams as soon as it drains, the rest when time is up. http.Server
// cannot do this, since it forgets hijacked connections.
type requestTracker struct {
	streams    context.Context // ends when draining begins
	endStreams context.CancelCauseFunc
	all        context.Context // ends when time is up
	endAll     context.CancelCauseFunc

	mu     sync.Mutex    // guards what follows
	active int           // requests between enter and leave
	none   chan struct{} // closed while active is 0
	// adopted are the watches, whose requests may have left.
	adopted map[*watchStream]struct{}
}

func (t *requestTracker) init() {
	t.streams, t.endStreams = context.WithCancelCause(context.Background())
	t.all, t.endAll = context.WithCancelCause(context.Background())
	t.none = make(chan struct{})
	close(t.none)
	t.adopted = map[*watchStream]struct{}{}
}

// enter counts a request until leave.
func (t *requestTracker) enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enterLocked()
}

func (t *requestTracker) enterLocked() {
	if t.active == 0 {
		t.none = make(chan struct{})
	}
	t.active++
}

func (t *requestTracker) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked()
}

func (t *requestTracker) leaveLocked() {
	if t.active--; t.active == 0 {
		close(t.none)
	}
}

// adopt counts a watch, which may go on after its handler has returned, until
// part.
func (t *requestTracker) adopt(s *watchStream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enterLocked()
	t.adopted[s] = struct{}{}
	if t.all.Err() != nil {
		s.pulse.cut()
	}
}

func (t *requestTracker) part(s *watchStream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.adopted, s)
	t.leaveLocked()
}

// bind returns a context that also ends with the gateway. It reports false
// for a stream that comes when there is to be none any more.
func (t *requestTracker) bind(ctx context.Context, stream bool) (context.Context, context.CancelFunc, bool) {
	end := t.all
	if stream {
		end = t.streams
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(end, func() { cancel(errDraining) })
	return ctx, func() { stop(); cancel(nil) }, end.Err() == nil
}

func (t *requestTracker) drain() { t.endStreams(errDraining) }

func (t *requestTracker) draining() bool { return t.streams.Err() != nil }

// cut ends everything.
func (t *requestTracker) cut() {
	t.endStreams(errDraining)
	t.endAll(errDraining)
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.adopted {
		s.pulse.cut()
	}
}

// idle returns a channel that is closed once no request is under way.
func (t *requestTracker) idle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.none
}
