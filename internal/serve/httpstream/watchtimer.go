// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
)

const (
	// bookmarkInterval is the API server's period of bookmarks. The last one is
	// written lastBookmark before the end.
	bookmarkInterval = 60 * time.Second
	lastBookmark     = 2 * time.Second
	// maxSilence is for how long bookmarks are written without a sign of the API server,
	// which is due each bookmarkInterval, but may miss one.
	maxSilence = 2*bookmarkInterval + 10*time.Second
)

// A watchTimer is the only timer of a watch. It fires when a bookmark is due and when
// the time is up. Since it fires every minute, it also finds a write that has blocked
// for too long, and a stream that should have ended long ago, so that writes need no
// deadlines.
type watchTimer struct {
	// fired gets a value when a bookmark is due, or the watch has to end.
	fired chan struct{}
	// deadline is when the watch ends.
	deadline time.Time
	cutOff   atomic.Bool
	drainAt  atomic.Int64 // when the watch ends because the gateway drains, in Unix nanoseconds; 0 for never
	since    atomic.Int64 // when the current write began, in Unix nanoseconds; 0 without one
	limit    atomic.Int64 // when the initial events must be written, likewise; 0 if they are
	// puller is the stream whose connection pulls the watch, and is woken with fired; nil if a
	// goroutine runs it.
	puller atomic.Pointer[h2.Stream]

	mu       sync.Mutex    // guards the fields below
	interval time.Duration // of bookmarks; 0 for the API server's
	timer    *time.Timer
	out      output
	over     bool
}

// begin starts the timer of a stream that writes to out. out is nil if writes have
// deadlines. The caller must stop the timer.
func (t *watchTimer) begin(out output) {
	t.fired, t.out = make(chan struct{}, 1), out
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(t.next(), t.tick)
}

func (t *watchTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.over = true
}

func (t *watchTimer) writing() { t.since.Store(time.Now().UnixNano()) }
func (t *watchTimer) written() { t.since.Store(0) }

func (t *watchTimer) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	since := t.since.Load()
	if since != 0 && time.Since(time.Unix(0, since)) >= WriteTimeout || t.late() && t.out != nil {
		t.out.abort()
		return
	}
	t.wake()
	t.timer.Reset(t.next())
}

// startInitial bounds how long the next initial events, of so many bytes, may take to
// write, as a DeadlineWriter bounds a list: they hold the state that they are from,
// however long the watch may last. endInitial must follow.
func (t *watchTimer) startInitial(bytes int64) {
	t.limit.Store(time.Now().Add(WriteTimeout + atMinRate(bytes)).UnixNano())
}

func (t *watchTimer) endInitial() { t.limit.Store(0) }

// late reports whether the stream still writes long after its time, or its initial
// events long after theirs.
func (t *watchTimer) late() bool {
	limit := t.limit.Load()
	return time.Since(t.deadline) >= WriteTimeout || limit != 0 && time.Now().UnixNano() >= limit
}

func (t *watchTimer) wake() {
	select {
	case t.fired <- struct{}{}:
	default: // the stream has not received the last value yet
	}
	t.wakePuller()
}

func (t *watchTimer) wakePuller() {
	if puller := t.puller.Load(); puller != nil {
		puller.Wake()
	}
}

// drain makes the watch end after a time, as it does when the gateway drains.
func (t *watchTimer) drain(after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.drainAt.Store(time.Now().Add(after).UnixNano())
		t.timer.Reset(min(after, t.next()))
	}
}

// drained reports whether the watch has to end because the gateway drains.
func (t *watchTimer) drained() bool {
	at := t.drainAt.Load()
	return at != 0 && time.Now().UnixNano() >= at
}

// cut ends the watch before its time, even if its client does not read.
func (t *watchTimer) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.cutOff.Store(true)
		t.wake()
		if t.out != nil { // a WebSocket's writes have deadlines
			t.out.cut()
		}
	}
}

// abort ends the watch, and a write that its client does not read.
func (t *watchTimer) abort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.cutOff.Store(true)
	t.wake()
	if t.out != nil { // a WebSocket's writes have deadlines
		t.out.abort()
	}
}

// timeUp reports whether the watch has to end.
func (t *watchTimer) timeUp() bool { return t.cutOff.Load() || !time.Now().Before(t.deadline) }

// setInterval changes the interval of bookmarks from the next one on.
func (t *watchTimer) setInterval(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interval = d
}

// next returns the time until the timer fires next: at the next bookmark or at the
// end, and after the end every minute.
func (t *watchTimer) next() time.Duration {
	left := time.Until(t.deadline)
	if at := t.drainAt.Load(); at != 0 {
		if until := time.Until(time.Unix(0, at)); until > 0 {
			left = min(left, until)
		}
	}
	switch {
	case left <= 0:
		return bookmarkInterval
	case t.interval > 0:
		return min(t.interval, left)
	}
	return min(nextBookmark(t.deadline), left)
}

// nextBookmark returns the time until the next bookmark: a minute, or until shortly
// before the end if that is earlier.
func nextBookmark(deadline time.Time) time.Duration {
	left := time.Until(deadline) - lastBookmark
	if left <= 0 || left > bookmarkInterval {
		return bookmarkInterval
	}
	return left
}
