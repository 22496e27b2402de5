// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"math"
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
	// maxHeld is how long a watch that is sure to have something to send may take to do so.
	maxHeld = 1250 * time.Millisecond
	// maxUnchecked is how long a watch may be silent before it is checked without a caller of
	// Check. API servers send a bookmark each minute, unless there has never been a change.
	maxUnchecked = 75 * time.Second
)

// A check compares the open watch with a second one.
type check struct {
	began time.Time
	done  chan struct{} // closed at the end
	// silent is set, before done is closed, if the check has closed the watch.
	silent bool
}

// Check compares the open watch, if it has sent nothing for ten seconds, with a second one.
// That begins before the last known event, which it has to send again. If it sends another
// one, which the open watch does not send within a second, or if it sends nothing at all,
// the open one is closed, and Continuity gets Silent before Check returns. Callers share a
// check, and a result for 15 seconds. Check does nothing without [Options].Watchdog, and
// returns when ctx ends; without news that takes a quarter of a second. Any goroutine may
// call it. Without a caller, a watch is checked when it has been silent for 75 seconds.
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
	lastFrame, at := w.lastFrame, w.at
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		defer close(c.done)
		switch w.compare(at) {
		case behind:
			c.silent = !w.sends(lastFrame) && w.replace(lastFrame)
		case held:
			c.silent = w.replace(lastFrame)
		}
	}()
	return c
}

// A position is how far the open watch has come.
type position struct {
	head  uint64 // of the sink
	last  uint64 // RV of the last known event; 0 if none is known
	empty bool   // there was no event, and no object in the list
}

func (r *Reflector[O]) position() position {
	p := position{head: r.sink.Head(), empty: r.recent.known && r.recent.newestAt == nil}
	if n := len(r.recent.tail); n > 0 {
		p.last, p.empty = r.recent.tail[n-1].RV, false
	}
	return p
}

// A comparison is what the upstream shows of the open watch.
type comparison int

const (
	alike  comparison = iota // it lacks nothing, as far as can be known
	behind                   // there is an event that it has not sent
	held                     // what the upstream has to send on any watch does not arrive
)

// compare asks the upstream for what follows a position. A second watch from the head is silent
// if nothing does, and also behind a proxy that holds back all watches. So it begins before the
// last known event, and if it is silent, a watch without an RV has to send the objects: an
// aggregated API server may not send events again.
func (w *watchdog[O]) compare(at position) comparison {
	fromHead := url.Values{"resourceVersion": {kube.FormatRV(at.head)}}
	if at.last == 0 {
		if _, newer, _ := w.listen(fromHead, at.head, checkWait); newer || at.empty && w.hasObjects() {
			return behind
		}
		return alike
	}
	heard, newer, err := w.listen(url.Values{"resourceVersion": {kube.FormatRV(at.last - 1)}}, at.head, maxHeld)
	if errors.Is(err, errExpired) { // which was sent on a watch
		_, newer, _ = w.listen(fromHead, at.head, checkWait)
	}
	if !heard && !newer {
		if heard, _, _ = w.listen(url.Values{}, math.MaxUint64, maxHeld); !heard {
			return held
		}
	}
	if newer {
		return behind
	}
	return alike
}

// listen opens a watch and reads what it sends at once. It reports whether anything has come
// within a time, and whether that was an event after the head. Any other end of the watch
// counts as heard: the reflector's own requests find out what is wrong.
func (w *watchdog[O]) listen(query url.Values, head uint64, wait time.Duration) (heard, newer bool, err error) {
	s, err := w.r.openOn(w.ctx, w.r.opts.Transport, query)
	if err != nil {
		return true, false, err
	}
	defer s.close()
	timer := time.AfterFunc(wait, s.close)
	defer timer.Stop()
	for {
		f, err := s.next()
		switch {
		case err != nil:
			return heard || timer.Stop(), false, err
		case f.typ != kube.Bookmark && f.rv > head:
			return true, true, nil
		case !heard:
			heard = true
			timer.Reset(checkWait) // for all that it sends at once
		}
	}
}

// hasObjects reports whether the upstream lists an object.
func (w *watchdog[O]) hasObjects() bool {
	ctx, cancel := context.WithTimeout(w.ctx, maxHeld)
	defer cancel()
	resp, err := w.r.get(ctx, w.r.opts.Transport, w.r.requestURL(url.Values{"limit": {"1"}}), acceptJSON)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	page, err := readPage(resp.Body, w.r.opts.Kind)
	return err == nil && len(page.Items) > 0
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
