// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// mostWatches is how many watches one multiwatch may be.
	mostWatches = 100
	// zipEvery is how often at the most a multiwatch in gzip is written to: what
	// comes together compresses better, in less time, and what reads it shows it
	// on a screen. What comes behind a pause is written at once.
	zipEvery = 16 * time.Millisecond
)

// A multiwatch serves several watches as one response, for browsers, which open
// six connections at the most:
//
//	GET /watchkeeper/v1/multiwatch?watch=<path and query>&watch=…
//
// Each line is an event of one of them with the number of the watch in front,
// counted from 0:
//
//	{"watch":1,"type":"ADDED","object":{…}}
//
// Each is served as the request by itself would be, and in the caller's name.
// What would have been an answer with an error is an event ERROR with its
// Status. {"watch":1,"type":"END"} is the last of each watch; the others go on.
//
// With upstream=1 it also tells of what a watch by itself is silent about, see
// contacts.
//
// A client that accepts gzip is answered in gzip, as browsers do without being
// asked to.
type multiwatch struct {
	// answer serves a request for the API.
	answer http.HandlerFunc
	// contact tells how the upstream of a watch is; nil where nobody knows.
	contact func(*http.Request) contact
	log     *slog.Logger
}

func (m *multiwatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || isUpgrade(r) {
		w.Header().Set("Allow", "GET")
		writeStatus(w, r, methodNotAllowed())
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	requests, err := watchRequests(r.WithContext(ctx))
	if err != nil {
		writeStatus(w, r, newStatus(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("Vary", "Accept-Encoding")
	zipped := acceptsGzip(r)
	if zipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	out, err := newResponseOut(w)
	if err != nil {
		return
	}
	beat := pulse{deadline: time.Now().Add(math.MaxInt64)} // those of the watches count
	beat.begin(out)
	defer beat.stop()
	sink := &httpSink{out: out, pulse: &beat}
	defer sink.release()
	shared := &sharedSink{sink: sink, failed: cancel}
	if zipped {
		if shared.zip, err = newZipOut(out); err != nil {
			return
		}
		sink.out = shared.zip
	}
	var watches, telling sync.WaitGroup
	told := &contacts{of: m.contact}
	for i, inner := range requests {
		writer := &watchWriter{shared: shared, prefix: fmt.Sprintf(`{"watch":%d,`, i)}
		told.watches = append(told.watches, toldWatch{writer: writer, request: inner})
		watches.Go(func() { m.serve(writer, inner) })
	}
	if m.contact != nil && r.URL.Query().Get("upstream") == "1" {
		telling.Go(func() { told.run(ctx) })
	}
	watches.Wait()
	cancel()
	telling.Wait()
	shared.end()
}

// serve serves one of the watches.
func (m *multiwatch) serve(w *watchWriter, r *http.Request) {
	defer w.end()
	defer func() {
		// net/http is not there to recover for this goroutine.
		switch p := recover(); p {
		case nil, http.ErrAbortHandler:
		default:
			m.log.Error("panic", "path", r.URL.Path, "panic", p)
			w.status = newStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the gateway failed: see its log")
		}
	}()
	m.answer(w, r)
}

// watchRequests returns the watches that a request asks for.
func watchRequests(r *http.Request) ([]*http.Request, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("the query cannot be read: %w", err)
	}
	watches := query["watch"]
	if n := len(watches); n == 0 || n > mostWatches {
		return nil, fmt.Errorf("a multiwatch is of 1 to %d watches, each a parameter such as watch=%s; this is %d",
			mostWatches, url.QueryEscape("/api/v1/pods?watch=1"), n)
	}
	var requests []*http.Request
	for i, text := range watches {
		u, err := url.ParseRequestURI(text)
		if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") {
			return nil, fmt.Errorf("watch %d is %q: it has to be a path with its query, such as /api/v1/pods?watch=1", i, text)
		}
		inner := r.Clone(r.Context())
		inner.URL, inner.RequestURI = u, u.RequestURI()
		inner.Header.Del("Accept-Encoding")
		if !isWatch(inner) {
			return nil, fmt.Errorf("watch %d, %q, is no watch of a resource: it lacks watch=1, or its path is not one", i, text)
		}
		requests = append(requests, inner)
	}
	return requests, nil
}

// A sharedSink takes the lines of several watches to one client. A client that
// does not read holds them all, each at its own place.
type sharedSink struct {
	zip    *zipOut // where the sink writes; nil without compression
	failed func()  // called when the client is gone

	mu    sync.Mutex // guards what follows
	sink  *httpSink
	last  time.Time   // when it was flushed
	later *time.Timer // the flush that is due; nil for none
	ended bool
}

func (s *sharedSink) line(parts ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done(s.sink.frame(parts))
}

// flush has what there is written, in gzip within zipEvery.
func (s *sharedSink) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zip == nil {
		return s.done(s.sink.flush())
	}
	if s.later != nil {
		return nil
	}
	if wait := zipEvery - time.Since(s.last); wait > 0 {
		s.later = time.AfterFunc(wait, s.due)
		return nil
	}
	return s.flushLocked()
}

func (s *sharedSink) due() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.later = nil
	if !s.ended {
		_ = s.flushLocked() // who writes next learns of it
	}
}

func (s *sharedSink) flushLocked() error {
	err := s.done(s.sink.flush())
	s.last = time.Now()
	return err
}

// end writes what is left when all watches have ended.
func (s *sharedSink) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.later != nil {
		s.later.Stop()
	}
	if s.sink.flush() == nil && s.zip != nil {
		s.sink.pulse.writing()
		_ = s.zip.end() // a client that is gone does not get it
		s.sink.pulse.written()
	}
}

func (s *sharedSink) done(err error) error {
	if err != nil {
		s.failed()
	}
	return err
}
