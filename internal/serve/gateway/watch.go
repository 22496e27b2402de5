// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/multiwatch"
)

const (
	// minWatchTimeout is the API server's --min-request-timeout: a watch without a
	// timeoutSeconds lasts between one and two of it.
	minWatchTimeout = 1800 * time.Second
	// shortWatch is the timeoutSeconds of a watch that is passed through because its RV is
	// older than the timeline: the cache can answer the client's next one.
	shortWatch = 10
	// unprovenWatch is the same of a watch without an RV for which there is no proof of
	// freshness; unprovenList of one that begins with a list, which may take long.
	unprovenWatch = 60
	unprovenList  = 300
	// maxUnproven is how many of these are passed through at a time. There is no proof
	// when the API server is overloaded: it must not get all watches then.
	maxUnproven = 16
	// maxUnprovenPerUser is how many of them one user of shared mode may have.
	maxUnprovenPerUser = maxUnproven / 4
	// unprovenRetry is after how many seconds the others may ask again, when another
	// proof may be tried.
	unprovenRetry = 5
	// initialPiece is how many objects of a recorded initial state are read at a time
	// (T10).
	initialPiece = 500
)

// A watchStart is where a WATCH begins.
type watchStart struct {
	source httpstream.Source
	// state is the state of the initial events. Its item is the form of bookmarks.
	state state
	// rv is the RV that bookmarks have to exceed.
	rv uint64
	// expired is why the watch cannot resume from its RV; "" if it can.
	expired string
	// owner is the resource that the watch reads, and holds.
	owner *forms
	// over ends when the watch has to end; nil for never.
	over context.Context
	// encoder writes the objects.
	encoder *wire.Encoder
	// align, if not nil, aligns the rows of recorded objects to the columns of the
	// watch.
	align func([]*scan.Object)
	// replayed, if not nil, returns the current moment of a replay.
	replayed func() time.Time
	// live, if not nil, reports whether a watch that begins in the history has gone live.
	live func() bool
	// past is set if a watch of the present begins in the history, which its caller needs the
	// right to read.
	past bool
}

// watch answers a WATCH (docs/kubernetes-watch.md, "WATCH"). A watch over HTTP is
// streamed by the responseRecorder's caller, after the memory of this call is free.
func (h *reads) watch(w *responseRecorder, r *http.Request, q *query, s store) error {
	if h.tracker.Draining() {
		return s.decline(status.Unavailable(upstream.ErrShutdown.Error(), true))
	}
	initial := q.SendsInitialEvents()
	began := func() {}
	if initial || q.IsLegacyWatch() { // the initial events are a list
		end, err := h.users.List(r.Context())
		if err != nil {
			return err
		}
		began = end
	}
	start, err := s.watch(r.Context(), q)
	if err != nil {
		began()
		return err
	}
	stream := &httpstream.Watch{
		Owner: start.owner, Source: start.source, Encoder: &start.owner.encoder,
		Wire: start.encoder.Stream(q.Form.Form, q.WebSocket), Form: q.Form.Form, Interest: q.Interest(),
		Start: start.rv, Expired: start.expired, Over: start.over, Replayed: start.replayed, Live: start.live, Times: q.Times,
		Bookmarks: q.Options.AllowWatchBookmarks, BookmarkTemplate: start.state.item,
	}
	switch {
	case !initial && !q.IsLegacyWatch():
	case start.state.recorded:
		stream.More = initialPieces(start.state, q, start.align)
	default:
		var release func()
		if stream.Initial, stream.Turn, release, err = h.initial(r.Context(), q, s, &start.state); err != nil {
			start.source.Close()
			began()
			return err
		}
		// The API server leaves other watches plain, also those that begin with the same events.
		if request.IsTrue(r, "sendInitialEvents") && !q.WebSocket && request.AcceptsGzip(r) {
			stream.Compress(w.Header())
		}
		end := began
		began = func() { release(); end() }
	}
	stream.Began = began
	if initial {
		stream.InitialEnd = start.state.rv
	}
	stream.SetTimeout(watchTimeout(q))
	start.owner.openWatch()
	w.rv = start.rv
	if caller := access.CallerOf(r.Context()); caller != nil && start.past {
		w.permit.Join(caller, access.PathAttributes(caller.User, pastPath))
	}
	w.bind(stream)
	setHeaders(w.Header(), q.Form, q)
	if q.WebSocket {
		h.tracker.ServeWebSocket(w, r, stream)
	} else {
		w.stream = stream
	}
	return nil
}

// initial returns the initial events of a watch, which are in memory until release is
// called, and the turn in which they were found, which is given up.
func (h *reads) initial(ctx context.Context, q *query, s store, st *state) (events []*scan.Object, turn *fairness.Turn, release func(), err error) {
	if turn, err = h.users.Turn(ctx); err != nil {
		return nil, nil, nil, err
	}
	defer turn.End()
	p, err := newPage(st, q, "", 0, nil)
	if err != nil {
		return nil, nil, nil, s.failed(err)
	}
	bytes := 0
	for _, o := range p.items {
		bytes += len(o.JSON)
	}
	release, err = h.users.Hold(ctx, int64(bytes))
	return p.items, turn, release, err
}

// initialPieces returns a function that returns the state in pieces, nil at the end.
func initialPieces(st state, q *query, align func([]*scan.Object)) func() ([]*scan.Object, error) {
	next, over := kube.Key(""), false
	return func() ([]*scan.Object, error) {
		if over {
			return nil, nil
		}
		page, err := newPage(&st, q, next, initialPiece, nil)
		if over = page.next == "" || err != nil; !over {
			next = page.items[len(page.items)-1].Key + "\x00"
		}
		if align != nil {
			align(page.items)
		}
		return page.items, err
	}
}

// watchTimeout returns how long a watch lasts.
func watchTimeout(q *query) time.Duration {
	if t := q.Options.TimeoutSeconds; t != nil && *t != 0 {
		// A negative or overflowing timeout ends the watch at once.
		return time.Duration(*t) * time.Second
	}
	return minWatchTimeout + rand.N(minWatchTimeout)
}

// shorten returns a request for a watch, which is to be passed through, with a
// timeoutSeconds of at most so many.
func shorten(r *http.Request, seconds int64) *http.Request {
	q := r.URL.Query()
	var asked int64
	if _, err := fmt.Sscan(q.Get("timeoutSeconds"), &asked); err == nil && 0 < asked && asked <= seconds {
		return r
	}
	q.Set("timeoutSeconds", fmt.Sprint(seconds))
	short := r.WithContext(r.Context())
	u := *r.URL
	u.RawQuery = q.Encode()
	short.URL = &u
	return short
}

// openStream opens the stream of a request that lasts, unless it has one. It returns why
// not if the user has too many.
func (g *Gateway) openStream(rec *responseRecorder, r *http.Request) *metav1.Status {
	if rec.closeStream != nil {
		return nil
	}
	var err error
	if rec.closeStream, err = g.users.Stream(r.Context(), selectorOf(r)); err != nil {
		refused, _ := errors.AsType[*status.Error](err)
		return refused.Status
	}
	return nil
}

// selectorOf returns a text that is equal for equal selectors of a resource; "" if a watch
// has none. Namespaces and names do not count: events are found by them.
func selectorOf(r *http.Request) string {
	target, ok := request.ParsePath(r.URL.Path)
	if !ok || r.URL.RawQuery == "" || !request.IsWatch(r) {
		return ""
	}
	q := r.URL.Query()
	labels, fields := q.Get("labelSelector"), q.Get("fieldSelector")
	if labels == "" && fields == "" {
		return ""
	}
	return target.Resource.String() + "?" + url.QueryEscape(labels) + "&" + url.QueryEscape(fields)
}

// upstreamState returns whether the API server does not answer, is not ready, or does not
// answer for the resource of a cached watch.
func (h *reads) upstreamState(r *http.Request) multiwatch.UpstreamState {
	target, ok := request.ParsePath(r.URL.Path)
	if !ok {
		return multiwatch.UpstreamState{}
	}
	var s reflector.Status
	if res := h.cache.Watched(target.Resource); res != nil {
		s = res.Status()
	}
	const prefix = "no answer from the API server: "
	c := h.up.ContactUntil(r.Context(), time.Now())
	since, message := c.Since, ""
	if s.LastError != nil && (c.Err == nil || s.FailingSince.Before(since)) { // a refusal says nothing of the resource
		since = cmp.Or(s.LastKnown, s.FailingSince)
	}
	switch {
	case c.Answers():
		message = upstream.Cause(c.Err)
	case c.Err != nil:
		message = prefix + upstream.Cause(c.Err)
	case errors.Is(s.LastError, reflector.ErrSilent):
		message = "the watch only appeared to be open, or was behind"
	case s.LastError != nil:
		message = prefix + upstream.Cause(s.LastError)
	default:
		return multiwatch.UpstreamState{}
	}
	return multiwatch.UpstreamState{Since: since.UTC(), Message: message}
}
