// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// minSilence is how long a stream may be silent even if the interval of its
	// bookmarks is short.
	minSilence = 10 * time.Second
	// verifyPause is after which time a watch is checked that follows a silent one, until it has
	// passed.
	verifyPause = time.Second
	// answerTimeout is how long the response headers of a watch may take.
	answerTimeout = 30 * time.Second
)

// A watchdog ends a stream whose connection is dead but appears open, as it may
// through a proxy. API servers send bookmarks at an interval that they choose, about a
// minute. If a stream with bookmarks is silent for two and a half of the measured
// intervals, the watchdog opens a second watch on a new connection. A stream without any
// frame is not silent: API servers send no bookmark at or below the RV at which a watch
// began, so that there is none while the resource is idle. When the second watch is
// answered, the watchdog closes both, and the reflector's next watch uses the new
// connection. A false alarm costs a few requests and loses no event. After each alarm the
// measured interval is twice as long, until bookmarks show that it is shorter; a stream ends
// after its timeoutSeconds in any case. [Reflector.Check] does not wait for bookmarks, and also
// finds a stream that is behind. A stream is checked as by it that is silent for 75 seconds, or
// that sends events and has not been checked for as long.
type watchdog[O any] struct {
	r      *Reflector[O]
	stream *stream[O]
	ctx    context.Context
	cancel context.CancelFunc

	// The next two belong to the goroutine of follow.

	bookmarkGap  time.Duration // measured interval; 0 until then
	lastBookmark time.Time     // of the stream

	over chan struct{} // closed when the stream is not followed any more

	mu          sync.Mutex // guards all below
	lastFrame   time.Time
	at          position // after it
	maxSilence  time.Duration
	replacement http.RoundTripper // reached the upstream; nil until then
	err         error             // why the first watch was closed; nil if it was not
	stopped     bool
	timer       *time.Timer
	running     sync.WaitGroup // an armed timer with what it runs, and a check
	checked     *check         // the last one; nil before
	// When the last check began, and the position then; those of the beginning before.
	checkedOn time.Time
	checkedAt position
}

// startWatchdog watches over s until stop is called. It does nothing by itself unless
// [Options].Watchdog is set.
func (r *Reflector[O]) startWatchdog(ctx context.Context, s *stream[O]) *watchdog[O] {
	at := r.position()
	w := &watchdog[O]{r: r, stream: s, over: make(chan struct{}), lastFrame: time.Now(), at: at, checkedOn: time.Now(), checkedAt: at, bookmarkGap: r.bookmarkGap}
	w.ctx, w.cancel = context.WithCancel(ctx)
	if r.opts.Watchdog {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.armLocked(maxUnchecked); r.suspect.Load() {
			w.timer.Reset(verifyPause)
		}
	}
	return w
}

// observe notes a frame that the sink has received. Among frames that are read
// without waiting, only bookmarks and the last one have to be reported.
func (w *watchdog[O]) observe(typ kube.EventType) {
	if !w.r.opts.Watchdog {
		return
	}
	now := time.Now()
	if typ == kube.Bookmark {
		if !w.lastBookmark.IsZero() {
			gap := now.Sub(w.lastBookmark)
			if w.bookmarkGap > 0 { // intervals vary: smooth them
				gap = (3*w.bookmarkGap + gap) / 4
			}
			w.bookmarkGap, w.r.bookmarkGap = gap, gap
		}
		w.lastBookmark = now
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastFrame, w.at = now, w.r.position()
	if w.bookmarkGap == 0 {
		return
	}
	first := w.maxSilence == 0
	w.maxSilence = max(w.bookmarkGap*5/2, minSilence)
	if first && !w.r.suspect.Load() && w.timer.Stop() {
		w.running.Done()
		w.armLocked(min(w.maxSilence, maxUnchecked))
	}
}

func (w *watchdog[O]) armLocked(d time.Duration) {
	if w.stopped {
		return
	}
	w.running.Add(1)
	w.timer = time.AfterFunc(d, func() {
		defer w.running.Done()
		w.checkSilence()
	})
}

// checkSilence replaces the stream if its bookmarks fail to arrive, and checks it if it has been
// silent for long, or sends events and has not been checked for as long.
func (w *watchdog[O]) checkSilence() {
	w.mu.Lock()
	lastFrame, maxSilence := w.lastFrame, w.maxSilence
	silence, next := time.Since(lastFrame), maxUnchecked
	unchecked := silence
	if silence < minSilence && w.at.last != w.checkedAt.last {
		unchecked = time.Since(w.checkedOn)
	}
	w.mu.Unlock()
	if maxSilence == 0 { // no bookmarks
		maxSilence = math.MaxInt64
	}
	switch {
	case w.r.suspect.Load(): // the watch before this one was silent
		if next = verifyPause; w.r.Status().Phase == Watching {
			w.check()
		}
	case silence >= maxSilence:
		if w.replace(func() bool { return w.lastFrame != lastFrame }) {
			return
		}
		next = min(next, maxSilence)
	case unchecked >= maxUnchecked:
		w.check()
		next = min(next, maxSilence-silence)
	default:
		next = min(next-unchecked, maxSilence-silence)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armLocked(next)
}

// replace opens a watch on a new connection, and closes the stream unless it is alive, which is
// called with mu. It reports whether it has closed the stream.
func (w *watchdog[O]) replace(alive func() bool) bool {
	w.mu.Lock()
	rv := w.at.head
	w.mu.Unlock()
	transport, err := w.tryFresh(rv)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, refused := errors.AsType[*RefusedError](err)
	switch {
	case err == nil && (w.stopped || alive()):
		discard(transport)
		return false
	case err == nil:
		w.replacement, w.err = transport, ErrSilent
	case refused || errors.Is(err, errExpired):
		w.err = err
	default:
		w.r.log.Info("silent watch not replaced", "rv", rv, "cause", err)
		return false
	}
	w.stream.close()
	return true
}

// tryFresh returns a transport with a new connection, on which a watch was answered.
func (w *watchdog[O]) tryFresh(rv uint64) (http.RoundTripper, error) {
	transport, err := freshTransport(w.r.opts.Transport)
	if err != nil {
		return nil, err
	}
	s, err := w.r.openOn(w.ctx, transport, url.Values{"resourceVersion": {kube.FormatRV(rv)}})
	if err != nil {
		discard(transport)
		return nil, err
	}
	s.close()
	return transport, nil
}

// end closes the stream for an error.
func (w *watchdog[O]) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped && w.err == nil {
		w.err = err
		w.stream.close()
	}
}

// stop ends the watchdog. If that has closed the stream, stop returns why, and the
// reflector continues on the new connection, if there is one. Later calls do nothing.
func (w *watchdog[O]) stop() (cause error) {
	w.cancel()
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return nil
	}
	w.stopped = true
	if w.timer != nil && w.timer.Stop() {
		w.running.Done()
	}
	w.mu.Unlock()
	w.running.Wait()
	if w.replacement != nil {
		discard(w.r.transport)
		w.r.transport = w.replacement
	}
	if errors.Is(w.err, ErrSilent) {
		// The next stream may be silent for twice as long. If two bookmarks had come by
		// chance at a short interval, no stream would otherwise last until the next one,
		// and an idle upstream could never prove its history.
		w.r.bookmarkGap = w.maxSilence * 4 / 5
	}
	return w.err
}
