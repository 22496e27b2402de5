// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// leastSilence is how long a stream may be silent however often it has
	// bookmarks.
	leastSilence = 10 * time.Second
	// answerTime is how long an answer to a watch is waited for.
	answerTime = 30 * time.Second
)

// A guard looks after one stream. A connection may be dead and not show it, as
// behind a proxy that is well. API servers send bookmarks at an interval of
// their own, about a minute, so one that has been seen to do so and is silent
// for two and a half of them is asked again, by a second watch on a new
// connection; when that is answered, it takes the place of the first one. A
// false alarm costs a request and loses nothing.
type guard[O any] struct {
	r      *reflector[O]
	ctx    context.Context
	cancel context.CancelFunc
	gap    time.Duration // between bookmarks; 0 if it is not known
	marked time.Time     // the last bookmark of this stream

	mu    sync.Mutex // guards all below
	old   *stream[O] // the stream
	heard time.Time  // the last frame
	rv    uint64     // to go on from
	limit time.Duration
	next  *successor[O]
	err   error // the answer to the second watch, if that was no stream
	over  bool
	timer *time.Timer
	all   sync.WaitGroup // a timer that is armed, or what it has started
}

// A successor is a stream that is to take the place of a silent one.
type successor[O any] struct {
	*stream[O]
	transport http.RoundTripper
}

// guard looks after a stream from now on; without a watchdog it is idle.
func (r *reflector[O]) guard(ctx context.Context, s *stream[O]) *guard[O] {
	g := &guard[O]{r: r, old: s, heard: time.Now(), rv: r.resumeAt(), gap: r.bookmarkGap}
	g.ctx, g.cancel = context.WithCancel(ctx)
	g.setLimit()
	return g
}

// saw notes a frame that has been dealt with. It need not be told of frames that
// others are waiting behind, but for bookmarks.
func (g *guard[O]) saw(typ kube.EventType) {
	if !g.r.opts.Watchdog {
		return
	}
	now := time.Now()
	g.mu.Lock()
	g.heard, g.rv = now, g.r.resumeAt()
	g.mu.Unlock()
	if typ != kube.Bookmark {
		return
	}
	if !g.marked.IsZero() {
		gap := now.Sub(g.marked)
		if g.gap > 0 { // the API server's own differ
			gap = (3*g.gap + gap) / 4
		}
		g.gap, g.r.bookmarkGap = gap, gap
		g.setLimit()
	}
	g.marked = now
}

// setLimit arms the timer once the gap is known.
func (g *guard[O]) setLimit() {
	if !g.r.opts.Watchdog || g.gap == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = max(g.gap*5/2, leastSilence)
	if g.timer == nil {
		g.armLocked(g.limit)
	}
}

func (g *guard[O]) armLocked(d time.Duration) {
	if g.over {
		return
	}
	g.all.Add(1)
	g.timer = time.AfterFunc(d, func() {
		defer g.all.Done()
		g.check()
	})
}

// check is called when the stream may have been silent for too long.
func (g *guard[O]) check() {
	g.mu.Lock()
	heard, rv := g.heard, g.rv
	if left := g.limit - time.Since(heard); left > 0 || g.over {
		g.armLocked(left)
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	s, err := g.second(rv)
	g.mu.Lock()
	defer g.mu.Unlock()
	_, refused := errors.AsType[*RefusedError](err)
	switch {
	case err == nil && (g.over || g.heard != heard): // the first one lives
		s.close()
		g.r.discard(s.transport)
	case err == nil:
		g.next = s
		g.old.close()
		return
	case refused || errors.Is(err, errExpired):
		g.err = err
		g.old.close()
		return
	default:
		g.r.log.Info("a silent watch, and no answer to a second one", "rv", rv, "cause", err)
	}
	g.armLocked(g.limit)
}

// second opens a second watch, on a connection of its own.
func (g *guard[O]) second(rv uint64) (*successor[O], error) {
	transport, err := fresh(g.r.opts.Transport)
	if err != nil {
		return nil, err
	}
	s, err := g.r.openOn(g.ctx, transport, url.Values{"resourceVersion": {kube.FormatRV(rv)}})
	if err != nil {
		g.r.discard(transport)
		return nil, err
	}
	return &successor[O]{s, transport}, nil
}

// discard lets go of the connections of a transport that is not used any more,
// unless it is the one that was given.
func (r *reflector[O]) discard(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok && t != r.opts.Transport {
		c.CloseIdleConnections()
	}
}

// instead returns the stream that takes the place of the one that has just
// failed, nil if there is none, and why it has failed if the guard knows.
func (g *guard[O]) instead() (*successor[O], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.next
	if g.next = nil; next != nil {
		g.old, g.heard, g.marked = next.stream, time.Now(), time.Time{}
		g.armLocked(g.limit)
	}
	return next, g.err
}

// stop ends the guard, and the streams that it has opened.
func (g *guard[O]) stop() {
	g.cancel()
	g.mu.Lock()
	g.over = true
	if g.timer != nil && g.timer.Stop() {
		g.all.Done()
	}
	g.mu.Unlock()
	g.all.Wait()
	if g.next != nil {
		g.next.close()
		g.r.discard(g.next.transport)
	}
}
