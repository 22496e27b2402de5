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

// noProofOfEvents is why projections of Events need an RV.
const noProofOfEvents = "fields: of Events, it cannot be known here what is most recent: give a resourceVersion, such as 0"

// serveWatch answers a WATCH (spec §2, §4).
func (c *cache) serveWatch(w *recorder, r *http.Request, rd *read, res *resource, v *timeline.View) bool {
	if c.isDraining() {
		return false
	}
	initial := rd.opts.SendInitialEvents != nil && *rd.opts.SendInitialEvents
	if rd.opts.ResourceVersion == "" {
		if uncachedUpstream(res.id) {
			return rd.refuse(badRequest(noProofOfEvents)) // no bookmarks in time for a proof
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
	start, lost := rd.rv, ""
	gap, inGap := v.GapAround(start)
	if initial || rd.rv == 0 {
		start = v.RV
	} else if rd.fields == nil && inGap {
		// The API server cannot continue it either: the client may have stopped
		// amid the difference (ADR 2).
		start, lost = v.RV, tooOld(start, gap.To)
	}
	s := &watchStream{
		cache: c, res: res, wire: res.encoder.Stream(rd.form, rd.websocket),
		bookmarkForm: v.BookmarkForm, start: start, lost: lost,
	}
	if rd.speed > 0 || !v.CanStart(start) {
		cursor, err := c.past.resume(r.Context(), rd, res, v)
		switch gone, inGap := errors.AsType[goneError](err); {
		case inGap && rd.fields == nil:
			start, s.lost = v.RV, gone.Error()
		case cursor != nil:
			s.source = cursor
		case rd.speed > 0:
			return rd.refuse(c.past.notReplayed(res.id, err))
		case rd.fields != nil:
			return rd.refuse(expiredFor(tooOld(start, v.Start)))
		default:
			shorten(r)
			return false
		}
	}
	if s.source == nil {
		cursor, err := res.timeline.WatchFrom(v, start, rd.interest())
		if err != nil {
			return false
		}
		s.source = c.past.follow(res, v, cursor, rd.interest())
	}
	if initial || legacy {
		s.initial = newPage(v.RV, &v.Snapshot, rd, "", 0, nil).items
	}
	if initial {
		s.end = v.RV
	}
	c.stream(w, r, rd, s)
	return true
}

// stream has the answer be a watch. What is streamed over HTTP is left to the
// recorder, when all that was needed to get here is free again.
func (c *cache) stream(w *recorder, r *http.Request, rd *read, s *watchStream) {
	s.form, s.in, s.over = rd.form, rd.interest(), rd.over
	s.bookmarks, s.pulse.deadline = rd.opts.AllowWatchBookmarks, time.Now().Add(watchTimeout(rd))
	if rd.speed > 0 && s.bookmarks {
		s.pulse.every = replayBookmarkEvery
	}
	c.opened(s.res)
	setHeaders(w.Header(), rd)
	if !rd.websocket {
		w.stream = s
		return
	}
	defer s.close()
	ctx, cancel := context.WithDeadline(r.Context(), s.pulse.deadline)
	defer cancel()
	serveWebSocket(ctx, w, r, rd.form, func(ctx context.Context, sink frameSink) {
		s.sink, s.gone = sink, ctx.Done()
		s.pulse.begin(nil)
		defer s.pulse.stop()
		s.run()
	})
}

// tooOld is what a client is told whose RV cannot be continued from; oldest is
// one that can.
func tooOld(rv, oldest uint64) string {
	return fmt.Sprintf("too old resource version: %d (%d)", rv, oldest)
}

// opened counts a watch, which holds its resource, until its close.
func (c *cache) opened(res *resource) {
	res.watches.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	res.readers++
}

func (s *watchStream) close() {
	s.source.Close()
	s.res.watches.Add(-1)
	s.cache.release(s.res)
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
