// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"net/url"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// checkWait is how long a check waits for an event that the open watch lacks: an API
	// server sends what it has at once. checkGrace is how long the open watch then has to
	// send it, too, and checkPause how long the result of a check is good for.
	checkWait  = 250 * time.Millisecond
	checkGrace = time.Second
	checkPause = 15 * time.Second
)

// A check compares the open watch with a second one.
type check struct {
	began time.Time
	done  chan struct{} // closed at the end
	// silent is set, before done is closed, if the check has closed the watch.
	silent bool
}

// Check compares the open watch, if it has sent nothing for ten seconds, with a second one
// from the sink's head. If that has an event which the open one does not send within a second,
// the open one is closed, and Continuity gets Silent before Check returns. Callers share a
// check, and a result for 15 seconds. Check does nothing without [Options].Watchdog, and
// returns when ctx ends; without news that takes a quarter of a second. Any goroutine may
// call it.
func (r *Reflector[O]) Check(ctx context.Context) {
	w := r.watchdog.Load()
	if w == nil || !r.opts.Watchdog {
		return
	}
	c := w.check()
	if c == nil {
		return
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return
	}
	if c.silent {
		select {
		case <-w.over:
		case <-ctx.Done():
		}
	}
}

// check returns the running check, or begins one. It is nil if the stream needs none.
func (w *watchdog[O]) check() *check {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.checked != nil && time.Since(w.checked.began) < checkPause {
		return w.checked
	}
	if w.stopped || time.Since(w.lastFrame) < minSilence {
		return nil
	}
	c := &check{began: time.Now(), done: make(chan struct{})}
	w.checked = c
	lastFrame, head := w.lastFrame, w.head
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		defer close(c.done)
		if w.hasNewer(head) && !w.sends(lastFrame) {
			c.silent = w.replace(lastFrame)
		}
	}()
	return c
}

// hasNewer reports whether the upstream sends an event after the head at once.
func (w *watchdog[O]) hasNewer(head uint64) bool {
	s, err := w.r.openOn(w.ctx, w.r.opts.Transport, url.Values{"resourceVersion": {kube.FormatRV(head)}})
	if err != nil {
		return false // which the reflector's own requests find out
	}
	defer s.close()
	defer time.AfterFunc(checkWait, s.close).Stop()
	for {
		f, err := s.next()
		if err != nil {
			return false
		}
		if f.typ != kube.Bookmark && f.rv > head {
			return true
		}
	}
}

// sends waits for a moment, and reports whether the stream has sent something since lastFrame.
func (w *watchdog[O]) sends(lastFrame time.Time) bool {
	for deadline := time.Now().Add(checkGrace); time.Now().Before(deadline) && w.ctx.Err() == nil; time.Sleep(checkGrace / 20) {
		w.mu.Lock()
		alive := w.lastFrame != lastFrame
		w.mu.Unlock()
		if alive {
			return true
		}
	}
	return w.ctx.Err() != nil
}
