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

// mostWatches is how many watches one multiwatch may be.
const mostWatches = 100

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
	mu     sync.Mutex // guards sink
	sink   *httpSink
	failed func() // called when the client is gone
}

func (s *sharedSink) line(parts ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done(s.sink.frame(parts))
}

func (s *sharedSink) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done(s.sink.flush())
}

func (s *sharedSink) done(err error) error {
	if err != nil {
		s.failed()
	}
	return err
}
