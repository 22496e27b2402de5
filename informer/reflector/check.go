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
	done chan struct{} // closed at the end
	// These are set before done is closed: whether the check has shown that the watch lacks
	// nothing, and whether it has closed the watch.
	current, silent bool
}

// Check compares the open watch with a second one. That begins before the last known event,
// which it has to send again. If it sends newer ones, to which the open watch does not come
// within a second, or if it sends nothing at all, the open one is closed, and Continuity gets
// Silent before Check returns. Check reports whether the watch was shown to lack nothing. Callers
// share a check, and a result for 15 seconds, unless it is of before a silence of ten. Check does
// nothing without [Options].Watchdog, and returns when ctx ends; without news that takes a quarter
// of a second. Any goroutine may call it. Without a caller, a watch is checked when it has been
// silent for 75 seconds, or when it sends events and has not been checked for as long.
func (r *Reflector[O]) Check(ctx context.Context) (current bool) {
	w := r.watchdog.Load()
	if w == nil || !r.opts.Watchdog {
		return false
	}
	c := w.check()
	if c == nil {
		return false
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return false
	}
	if c.silent {
		select {
		case <-w.over:
		case <-ctx.Done():
		}
	}
	return c.current
}

// check returns the running check, or begins one. It is nil if the stream is at its end.
func (w *watchdog[O]) check() *check {
	w.mu.Lock()
	defer w.mu.Unlock()
	silentSince := w.lastFrame.Add(minSilence)
	first := time.Now().After(silentSince) && w.checkedOn.Before(silentSince) // since it is silent
	if w.checked != nil && time.Since(w.checkedOn) < checkPause && !first {
		return w.checked
	}
	if w.stopped {
		return nil
	}
	c, began, at := &check{done: make(chan struct{})}, time.Now(), w.at
	w.checked, w.checkedOn, w.checkedAt = c, began, at
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		defer close(c.done)
		switch result, newest := w.compare(at); result {
		case alike:
			c.current = true
		case behind:
			if c.current = w.reaches(newest); !c.current && w.ctx.Err() == nil {
				c.silent = w.replace(func() bool { return w.at.head >= newest })
			}
		case held:
			c.silent = w.replace(func() bool { return false })
		}
		if c.current && !w.r.checked(began) { // the watch has yet to prove its history: the next check may end the suspicion
			w.mu.Lock()
			w.checked = nil
			w.mu.Unlock()
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
	unsure comparison = iota // there is no answer
	alike                    // it lacks nothing
	behind                   // there are events that it had not sent when it was asked
	held                     // what the upstream has to send on any watch does not arrive
)

// compare asks the upstream for what follows a position; newest is the RV to which that comes, if
// the open watch was behind. A second watch from the head is silent if nothing follows, and also
// behind a proxy that holds back all watches. So it begins before the last known event, and if it
// is silent, a watch without an RV has to send the objects: an aggregated API server may not send
// events again.
func (w *watchdog[O]) compare(at position) (result comparison, newest uint64) {
	fromHead := url.Values{"resourceVersion": {kube.FormatRV(at.head)}}
	var heard bool
	var err error
	if at.last == 0 {
		_, newest, err = w.listen(fromHead, at.head, checkWait)
		if newest == 0 && at.empty {
			newest = w.newestObject()
		}
	} else {
		heard, newest, err = w.listen(url.Values{"resourceVersion": {kube.FormatRV(at.last - 1)}}, at.head, maxHeld)
		if errors.Is(err, errExpired) { // which was sent on a watch
			_, newest, err = w.listen(fromHead, at.head, checkWait)
		} else if !heard && err == nil {
			if heard, _, err = w.listen(url.Values{}, math.MaxUint64, maxHeld); !heard && err == nil {
				return held, 0
			}
		}
	}
	switch {
	case newest > 0:
		return behind, newest
	case err != nil:
		return unsure, 0
	}
	return alike, 0
}

// listen opens a watch and reads what it sends at once. It reports whether anything has come
// within a time, and the RV of the last event after the head, 0 if there is none. It returns an
// error if the watch ends otherwise: the reflector's own requests find out what is wrong.
func (w *watchdog[O]) listen(query url.Values, head uint64, wait time.Duration) (heard bool, newest uint64, err error) {
	s, err := w.r.openOn(w.ctx, w.r.opts.Transport, query)
	if err != nil {
		return false, 0, err
	}
	defer s.close()
	timer := time.AfterFunc(wait, s.close)
	defer timer.Stop()
	for {
		f, err := s.next()
		switch {
		case err != nil && timer.Stop():
			return heard, newest, err
		case err != nil:
			return heard, newest, nil
		case f.typ != kube.Bookmark && f.rv > head:
			newest = f.rv
		}
		if !heard {
			heard = true
			timer.Reset(checkWait) // for all that it sends at once
		}
	}
}

// newestObject returns the RV of an object that the upstream lists, 0 if there is none.
func (w *watchdog[O]) newestObject() uint64 {
	ctx, cancel := context.WithTimeout(w.ctx, maxHeld)
	defer cancel()
	resp, err := w.r.get(ctx, w.r.opts.Transport, w.r.requestURL(url.Values{"limit": {"1"}}), acceptJSON)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	page, err := readPage(resp.Body, w.r.opts.Kind)
	if err != nil || len(page.Items) == 0 {
		return 0
	}
	return page.Items[0].RV
}

// reaches waits for a moment, and reports whether the stream comes to an RV. The process may be
// suspended meanwhile: it counts how often it has looked.
func (w *watchdog[O]) reaches(rv uint64) bool {
	const looks = 20
	for range looks {
		w.mu.Lock()
		reached := w.at.head >= rv
		w.mu.Unlock()
		if reached || w.ctx.Err() != nil {
			return reached
		}
		time.Sleep(checkGrace / looks)
	}
	return false
}
