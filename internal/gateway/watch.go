// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

const (
	// minWatch is the API server's --min-request-timeout: a watch without a
	// timeoutSeconds lasts between one and two of it.
	minWatch = 1800 * time.Second
	// bookmarkEvery is the API server's period of bookmarks, and
	// bookmarkBefore how long before the end the last one comes.
	bookmarkEvery  = 60 * time.Second
	bookmarkBefore = 2 * time.Second
	// shortWatch is the timeoutSeconds of a watch passed through because its
	// RV is older than the timeline: the client's next one is served here.
	shortWatch = 10
)

// serveWatch answers a WATCH (spec §2, §4).
func (c *cache) serveWatch(w http.ResponseWriter, r *http.Request, rd *read, res *resource, v *timeline.View) bool {
	if c.isDraining() {
		return false
	}
	initial := rd.opts.SendInitialEvents != nil && *rd.opts.SendInitialEvents
	if rd.opts.ResourceVersion == "" {
		if uncachedUpstream(res.id) {
			return false // no bookmarks in time for a proof
		}
		// From now on, or all there is now: "now" is to include every
		// write that was acknowledged before the request.
		fresh, err := res.prover.fresh(r.Context())
		if err != nil {
			c.log.Debug("no proof of freshness", "resource", res.id.String(), "err", err)
			return false
		}
		v = fresh
	}
	if initial && v.RV < rd.rv {
		return false // the API server waits for it, or says that it is too large
	}
	// A /watch/ path at RV 0 gets the state without an end bookmark.
	legacy := rd.watchPath && rd.rv == 0 && rd.opts.SendInitialEvents == nil
	start := rd.rv
	if initial || rd.rv == 0 {
		start = v.RV
	} else if !v.CanStart(start) {
		shorten(r)
		return false
	}
	in := rd.interest()
	cursor, err := res.timeline.WatchFrom(v, start, in)
	if err != nil {
		return false
	}
	defer cursor.Close()
	res.watches.Add(1)
	defer res.watches.Add(-1)

	ctx, cancel := context.WithTimeout(r.Context(), watchTimeout(rd))
	defer cancel()
	s := &watchStream{
		res: res, rd: rd, in: in, wire: res.encoder.Stream(rd.form, rd.websocket),
		form: v.BookmarkForm, start: start, lag: c.metrics.lag,
	}
	stream := func(ctx context.Context, sink frameSink) {
		s.sink = sink
		defer sink.release()
		if ctx.Err() != nil {
			return // a negative timeoutSeconds
		}
		if initial || legacy {
			s.snapshot(v, initial)
		}
		v = nil // a WebSocket keeps this function, which is not to keep the log (T10)
		c.follow(ctx, s, cursor)
	}
	setHeaders(w.Header(), rd)
	if rd.websocket {
		serveWebSocket(ctx, w, r, rd.form, stream)
		return true
	}
	sink, err := newHTTPSink(w)
	if err == nil {
		stream(ctx, sink)
	}
	return true
}

// follow writes what the cursor yields until the watch ends: the client goes
// away, time is up, the gateway drains, the timeline ends, or the definition of
// the resource is over.
func (c *cache) follow(ctx context.Context, s *watchStream, cursor *timeline.Cursor) {
	deadline, _ := ctx.Deadline()
	bookmarks := time.NewTimer(nextBookmark(deadline))
	defer bookmarks.Stop()
	draining, over := c.draining, s.rd.over
	var drained <-chan time.Time
	last, due := false, false // what comes now is the last; a bookmark is due
	for {
		b, err := cursor.Next()
		if errors.Is(err, timeline.ErrCompacted) {
			s.expired(fmt.Sprintf("too old resource version: %d (%d)", cursor.RV(), s.res.timeline.View().Start))
			return
		}
		if err != nil {
			return
		}
		for _, e := range b.Events {
			s.event(e)
		}
		if due && !b.More {
			due = false
			s.bookmark(cursor.RV())
		}
		if !s.flush(b.At, len(b.Events) > 0) {
			return
		}
		if b.More && ctx.Err() == nil {
			continue
		}
		if last {
			return
		}
		// The place of a cursor that has nothing to yield moves by Next alone:
		// a bookmark comes after it.
		select {
		case <-cursor.Ready():
		case <-bookmarks.C:
			due = true
			bookmarks.Reset(nextBookmark(deadline))
		case <-over:
			over, last = nil, true // behind what there is, which may be an ERROR
		case <-draining:
			draining, drained = nil, time.After(rand.N(c.spread+1))
		case <-drained:
			due, last = true, true
		case <-ctx.Done():
			return
		}
	}
}

// watchTimeout returns how long a watch lasts.
func watchTimeout(rd *read) time.Duration {
	if t := rd.opts.TimeoutSeconds; t != nil && *t != 0 {
		// What is negative, or overflows, is over at once.
		return time.Duration(*t) * time.Second
	}
	return minWatch + rand.N(minWatch)
}

// nextBookmark returns when the next bookmark is due: in a minute, or shortly
// before the end if that is earlier.
func nextBookmark(deadline time.Time) time.Duration {
	left := time.Until(deadline) - bookmarkBefore
	if left <= 0 || left > bookmarkEvery {
		return bookmarkEvery
	}
	return left
}

// shorten changes the request, which is to be passed through, into one for a
// short watch.
func shorten(r *http.Request) {
	q := r.URL.Query()
	var asked int64
	if _, err := fmt.Sscan(q.Get("timeoutSeconds"), &asked); err == nil && 0 < asked && asked <= shortWatch {
		return
	}
	q.Set("timeoutSeconds", fmt.Sprint(shortWatch))
	r.URL.RawQuery = q.Encode()
}
