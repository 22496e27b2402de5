// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"testing"
	"testing/synctest"
	"time"
)

type abortable struct {
	output
	aborted chan struct{}
}

func (a *abortable) abort() { close(a.aborted) }

// TestWatchTimer: the timer fires for bookmarks every minute and shortly before the end,
// and at the end.
func TestWatchTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := watchTimer{deadline: start.Add(150 * time.Second)}
		p.begin(nil)
		defer p.stop()
		for _, want := range []time.Duration{60 * time.Second, 120 * time.Second, 148 * time.Second, 150 * time.Second} {
			<-p.fired
			if got := time.Since(start); got != want || p.timeUp() != (want == 150*time.Second) {
				t.Errorf("fired after %v, time up %v; want one after %v", got, p.timeUp(), want)
			}
		}
	})
}

// TestWatchTimerAborts: the timer aborts a blocked write, but no sequence of shorter
// writes, and nothing after the end.
func TestWatchTimerAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &abortable{aborted: make(chan struct{})}
		p := watchTimer{deadline: time.Now().Add(24 * time.Hour)}
		p.begin(out)
		for range 10 {
			p.writing()
			time.Sleep(WriteTimeout - bookmarkInterval)
			p.written()
		}
		start := time.Now()
		p.writing()
		<-out.aborted
		if took := time.Since(start); took < WriteTimeout || took > WriteTimeout+bookmarkInterval {
			t.Errorf("aborted after %v", took)
		}
		p.stop()

		out = &abortable{aborted: make(chan struct{})}
		over := watchTimer{deadline: time.Now().Add(time.Hour)}
		over.begin(out)
		over.writing()
		over.stop()
		over.tick() // a tick that was running during stop
		time.Sleep(2 * WriteTimeout)
		select {
		case <-out.aborted:
			t.Error("aborted after the end")
		default:
		}
	})
}
