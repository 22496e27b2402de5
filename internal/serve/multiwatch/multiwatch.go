// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package multiwatch serves several watches as one response, for browsers, which open
// at most six connections to a host:
//
//	GET /watchkeeper/v1/multiwatch?watch=<path and query>&watch=…
//
// Each line is an event of one watch. The member watch is the number of the watch in
// the query, counted from 0:
//
//	{"watch":1,"type":"ADDED","object":{…}}
//
// Each watch is served as if the client had sent the request separately, with the
// same credentials. If that answer were an error, the line is an ERROR event with its
// Status, and so it is if the answer breaks off. {"watch":1,"type":"END"} is the last line
// of a watch; other watches continue.
//
// With upstream=1 the response also has the state of the upstream, which a single
// watch does not show: see [staleNotifier].
//
// A client that accepts gzip gets gzip.
package multiwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
)

const (
	// maxWatches bounds the watches of one multiwatch.
	maxWatches = 100
	// gzipInterval is the shortest time between two writes of a multiwatch in gzip.
	// Events that are compressed together take fewer bytes and less time. An event
	// after a pause is written at once.
	gzipInterval = 16 * time.Millisecond
)

// A Handler serves multiwatches.
type Handler struct {
	// Answer serves a request for the API. It returns why a watch ended whose right was
	// revoked, nil for others.
	Answer func(http.ResponseWriter, *http.Request) *metav1.Status
	// Open opens the stream of a watch of its user, before anything else is done for the
	// watch, and returns what closes it. The error is a [status.Error]. With nil, none is counted.
	Open func(*http.Request) (closeIt func(), err error)
	// Upstream returns the state of the upstream of a watch; nil if it is not known.
	Upstream func(*http.Request) UpstreamState
	Logger   *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || request.IsUpgrade(r) {
		w.Header().Set("Allow", "GET")
		status.Write(w, r, status.MethodNotAllowed())
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	requests, err := watchRequests(r.WithContext(ctx))
	if err != nil {
		status.Write(w, r, status.BadRequest(err.Error()))
		return
	}
	closers, err := h.open(requests)
	if err != nil {
		refused, _ := errors.AsType[*status.Error](err)
		status.Write(w, r, refused.Status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("Vary", "Accept-Encoding")
	notifies := h.Upstream != nil && r.URL.Query().Get("upstream") == "1"
	if notifies {
		w.Header().Set(api.HeartbeatHeader, strconv.Itoa(int(heartbeat/time.Second)))
	}
	gzip := request.AcceptsGzip(r)
	if gzip {
		w.Header().Set("Content-Encoding", "gzip")
	}
	lines, err := httpstream.NewLines(w, gzip)
	if err != nil {
		closeAll(closers)
		return
	}
	defer lines.Close()
	shared := &sharedLines{lines: lines, gzip: gzip, failed: cancel, abort: lines.Abort}
	var watches, notifying sync.WaitGroup
	notifier := &staleNotifier{upstream: h.Upstream}
	for i, inner := range requests {
		writer := &watchWriter{shared: shared, prefix: fmt.Sprintf(`{"watch":%d,`, i)}
		notifier.watches = append(notifier.watches, notifiedWatch{writer: writer, request: inner})
	}
	// Also a watch that ends at once has the state before its END. Without a client, all end.
	if notifies && notifier.notify() == nil {
		notifying.Go(func() { notifier.run(ctx) })
	}
	for i := range notifier.watches {
		watches.Go(func() {
			defer closers[i]()
			h.serve(notifier.watches[i].writer, notifier.watches[i].request)
		})
	}
	watches.Wait()
	cancel()
	notifying.Wait()
	shared.end()
}

// open opens the streams of all watches, or none. A stream lasts until the watch's last
// line is written: a client that does not read keeps the goroutine of a refused watch, too.
func (h *Handler) open(requests []*http.Request) (closers []func(), err error) {
	for _, r := range requests {
		closeIt := func() {}
		if h.Open != nil {
			if closeIt, err = h.Open(r); err != nil {
				closeAll(closers)
				return nil, err
			}
		}
		closers = append(closers, closeIt)
	}
	return closers, nil
}

func closeAll(closers []func()) {
	for _, closeIt := range closers {
		closeIt()
	}
}

// serve serves one watch.
func (h *Handler) serve(w *watchWriter, r *http.Request) {
	defer w.end()
	defer func() {
		// net/http does not recover a panic on this goroutine.
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			// Alone, the response would break off. A clean end would tell the client that
			// its watch is complete up to here.
			w.status = w.broken("no end: the connection to the API server broke")
		default:
			h.Logger.Error("panic in a watch", "path", r.URL.Path, "panic", p)
			w.status = status.Internal("the gateway failed: see its log")
		}
	}()
	if revoked := h.Answer(w, r); revoked != nil {
		w.status = revoked
	}
}

// watchRequests returns the requests for the watches of a multiwatch.
func watchRequests(r *http.Request) ([]*http.Request, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("the query cannot be read: %w", err)
	}
	watches := query["watch"]
	if n := len(watches); n == 0 || n > maxWatches {
		return nil, fmt.Errorf("a multiwatch has 1 to %d watches, each a parameter such as watch=%s; this one has %d",
			maxWatches, url.QueryEscape("/api/v1/pods?watch=1"), n)
	}
	header := r.Header.Clone() // of all watches: 100 copies would take much memory
	header.Del("Accept-Encoding")
	var requests []*http.Request
	for i, text := range watches {
		u, err := url.ParseRequestURI(text)
		if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") {
			return nil, fmt.Errorf("watch %d has to be a path with its query, such as /api/v1/pods?watch=1", i)
		}
		inner := r.WithContext(r.Context())
		inner.Header, inner.URL, inner.RequestURI = header, u, u.RequestURI()
		if !request.IsWatch(inner) {
			return nil, fmt.Errorf("watch %d, of %q, is not a watch of a resource: watch=1 is missing, or the path is not that of a resource", i, u.Path)
		}
		requests = append(requests, inner)
	}
	return requests, nil
}

// sharedLines sends the lines of several watches to one client. If the client does not
// read, all of its watches wait.
type sharedLines struct {
	gzip   bool
	failed func() // called when the client is gone
	abort  func() // ends a blocked write, which holds the lock, and all later ones

	mu      sync.Mutex // guards the fields below
	lines   *httpstream.Lines
	flushed time.Time   // time of the last flush
	later   *time.Timer // of the next flush; nil if none is due
	ended   bool
}

func (s *sharedLines) line(parts ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lineLocked(parts...)
}

func (s *sharedLines) lineLocked(parts ...string) error { return s.done(s.lines.Write(parts...)) }

// flush sends the buffered lines; in gzip, within gzipInterval.
func (s *sharedLines) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gzip {
		return s.done(s.lines.Flush())
	}
	if s.later != nil {
		return nil
	}
	if wait := gzipInterval - time.Since(s.flushed); wait > 0 {
		s.later = time.AfterFunc(wait, s.flushDue)
		return nil
	}
	return s.flushLocked()
}

func (s *sharedLines) flushDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later = nil
	if !s.ended {
		_ = s.flushLocked() // after an error the next write fails, too
	}
}

func (s *sharedLines) flushLocked() error {
	err := s.done(s.lines.Flush())
	s.flushed = time.Now()
	return err
}

// end sends the remaining lines and the end of the response.
func (s *sharedLines) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.later != nil {
		s.later.Stop()
	}
	s.lines.End()
}

func (s *sharedLines) done(err error) error {
	if err != nil {
		s.failed()
	}
	return err
}
