// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Options configure a Server. The zero value is a server of Pods, which has none yet.
type Options struct {
	// Resources are the served resources; nil means [Pods].
	Resources []Resource
	// FirstRV is the resourceVersion of the empty server; 0 means 100.
	FirstRV uint64
	// Step is by how much each write raises the resourceVersion; 0 means 1. In a
	// cluster it is often more, because all resources share one counter.
	Step uint64
	// Bookmarks is the time between bookmarks of a watch; 0 means a minute.
	Bookmarks time.Duration
	// LastBookmark is how long before its timeout a watch gets its last
	// bookmark; 0 means two seconds.
	LastBookmark time.Duration
	// EagerBookmarks makes a watch get a bookmark when it begins and after every
	// batch of events, as from many aggregated API servers, and whenever the
	// resourceVersion has changed.
	EagerBookmarks bool
	// NoWatchList refuses sendInitialEvents, as API servers before 1.32, and those of 1.33, do.
	NoWatchList bool
	// Others answers requests that the server does not serve, and reports whether
	// it did: the rest get 404. It may be nil.
	Others func(w http.ResponseWriter, r *Request) (answered bool)

	// Format returns the format of a response, or nil if none is acceptable. The
	// default, nil, is JSON: objects, or their metadata.
	Format func(r *Request) Format
	// Live is called when a watch has sent its initial events; it may be nil.
	Live func(r *Request)
}

// A Server is an API server in memory. It is an http.Handler; [NewNetwork] and
// httptest.NewServer serve it. Its methods may be called by several goroutines.
type Server struct {
	opts        Options
	collections []*collection // by Options.Resources

	mu       sync.Mutex // guards what follows, and the collections
	rv       uint64
	changed  chan struct{} // closed and replaced with every change of what mu guards
	controls []*Control
	endings  uint64 // how often the open watches were ended
	ending   ending // how they were last ended
	made     int    // number of generated UIDs and names
}

// An ending is how open watches end.
type ending int

const (
	endCleanly ending = iota
	endCut            // the connection breaks
	endExpired        // with an ERROR event, 410
)

// New returns a server.
func New(o Options) *Server {
	if o.Resources == nil {
		o.Resources = []Resource{Pods}
	}
	if o.FirstRV == 0 {
		o.FirstRV = 100
	}
	if o.Step == 0 {
		o.Step = 1
	}
	if o.Bookmarks == 0 {
		o.Bookmarks = time.Minute
	}
	if o.LastBookmark == 0 {
		o.LastBookmark = 2 * time.Second
	}
	s := &Server{opts: o, rv: o.FirstRV, changed: make(chan struct{})}
	for _, r := range o.Resources {
		s.collections = append(s.collections, newCollection(r, s.rv))
	}
	return s
}

// A Control is a hook around the response to a request. next serves the request; the
// hook may act before, after or instead of it.
//
//	refuse:   informertest.WriteStatus(w, 403, "Forbidden", "no")
//	delay:    time.Sleep(time.Second); next(w)
//	cut:      panic(http.ErrAbortHandler)
//	change:   r.Query.Set("resourceVersion", "0"); next(w)
//	garble:   next(a ResponseWriter that changes what passes through it)
//	observe:  next(w)
//
// For a watch, next returns when the watch ends; each Write that reaches a hook's
// ResponseWriter has one or more complete frames.
type Control func(w http.ResponseWriter, r *Request, next func(http.ResponseWriter))

// Control adds a hook around all others, and returns a function that removes it. It
// panics if the hook is nil.
func (s *Server) Control(c Control) (remove func()) {
	if c == nil {
		panic("informertest: Control needs a hook")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Requests in progress read the slice without the lock: it is never changed.
	s.controls = append(slices.Clip(s.controls), &c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.controls = slices.DeleteFunc(slices.Clone(s.controls), func(other *Control) bool { return other == &c })
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, httpRequest *http.Request) {
	r := s.parse(httpRequest)
	s.mu.Lock()
	controls := s.controls
	r.endings = s.endings
	s.mu.Unlock()
	next := func(w http.ResponseWriter) { s.answer(w, r) }
	for _, c := range controls {
		inner := next
		next = func(w http.ResponseWriter) { (*c)(w, r, inner) }
	}
	next(w)
}

func (s *Server) answer(w http.ResponseWriter, r *Request) {
	switch r.Verb {
	case "list":
		s.serveList(w, r)
	case "watch":
		s.serveWatch(w, r)
	case "get":
		s.serveGet(w, r)
	case "create", "update", "patch", "delete":
		s.serveWrite(w, r)
	case "discovery":
		s.serveDiscovery(w, r)
	default:
		s.serveOthers(w, r)
	}
}

func (s *Server) serveOthers(w http.ResponseWriter, r *Request) {
	switch {
	case s.opts.Others != nil && s.opts.Others(w, r):
	case r.collection != nil && r.Method == http.MethodDelete && r.Name == "":
		failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "this test server has no deletecollection").write(w)
	default:
		notFound(r).write(w)
	}
}

// EndWatches ends the open watches cleanly, as a timeout does. A watch whose request
// has arrived counts as open.
func (s *Server) EndWatches() { s.end(endCleanly) }

// CutWatches breaks the connections of the open watches.
func (s *Server) CutWatches() { s.end(endCut) }

func (s *Server) end(how ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(how)
}

func (s *Server) endLocked(how ending) {
	s.endings++
	s.ending = how
	s.wakeLocked()
}

// wakeLocked wakes the open watches after a change.
func (s *Server) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}
