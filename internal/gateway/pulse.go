// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"
	"sync/atomic"
	"time"
)

// A pulse is the one timer of a watch. It tells when a bookmark is due and when
// its time is up; and since it beats every minute, it also sees a client that
// has not taken anything for too long, which spares each write a deadline of
// its own.
type pulse struct {
	// beat gets a value when a bookmark is due, or the watch is to end.
	beat chan struct{}
	// deadline is when the watch is to end.
	deadline time.Time
	isCut    atomic.Bool
	since    atomic.Int64 // when the write began that goes on, in Unix nanoseconds; 0 for none

	mu    sync.Mutex    // guards what follows
	every time.Duration // the period of bookmarks; 0 for the API server's
	timer *time.Timer
	out   streamOut
	over  bool
}

// begin starts the pulse of a stream that is written to out; nil for one that
// looks after its writes itself. It is to be stopped.
func (p *pulse) begin(out streamOut) {
	p.beat, p.out = make(chan struct{}, 1), out
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.next(), p.tick)
}

func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.over = true
}

func (p *pulse) writing() { p.since.Store(time.Now().UnixNano()) }
func (p *pulse) written() { p.since.Store(0) }

func (p *pulse) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if since := p.since.Load(); since != 0 && time.Since(time.Unix(0, since)) >= WriteTimeout {
		p.out.abort()
		return
	}
	p.wake()
	p.timer.Reset(p.next())
}

func (p *pulse) wake() {
	select {
	case p.beat <- struct{}{}:
	default: // the stream has not come to see the last one
	}
}

// cut ends the watch before its time, though its client may not take what is
// written.
func (p *pulse) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.isCut.Store(true)
		p.wake()
		p.out.cut()
	}
}

// timeUp reports whether the watch is to end.
func (p *pulse) timeUp() bool { return p.isCut.Load() || !time.Now().Before(p.deadline) }

// setEvery changes the period of bookmarks from the next one on.
func (p *pulse) setEvery(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every = d
}

// next returns when the next beat is due: with the next bookmark, or at the
// end; and behind it every minute.
func (p *pulse) next() time.Duration {
	left := time.Until(p.deadline)
	switch {
	case left <= 0:
		return bookmarkEvery
	case p.every > 0:
		return min(p.every, left)
	}
	return min(nextBookmark(p.deadline), left)
}
