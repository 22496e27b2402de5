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
}

func (t *requestTracker) init() {
	t.streams, t.endStreams = context.WithCancelCause(context.Background())
	t.all, t.endAll = context.WithCancelCause(context.Background())
	t.none = make(chan struct{})
	close(t.none)
}

// enter counts a request until the function it returns is called.
func (t *requestTracker) enter() (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.active == 0 {
		t.none = make(chan struct{})
	}
	t.active++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.active--; t.active == 0 {
			close(t.none)
		}
	}
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
}

// idle returns a channel that is closed once no request is under way.
func (t *requestTracker) idle() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.none
}
