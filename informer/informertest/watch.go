// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"net/http"
	"time"
)

// WATCH. The server honours:
//
//   - resourceVersion=N: the changes after N, in order; an ERROR event with 410
//     if N is compacted; nothing until N is reached if it is in the future.
//   - resourceVersion unset or 0: ADDED for every object, then the changes.
//   - sendInitialEvents=true (WatchList, KEP-3157): ADDED for every object, a
//     bookmark with the annotation k8s.io/initial-events-end, then the changes;
//     504 as for LIST if N is not reached; 422 with Options.NoWatchList.
//     sendInitialEvents=false begins with the changes from now on.
//   - labelSelector and fieldSelector: an object that begins to match is ADDED;
//     one that no longer matches, or was deleted, is DELETED with its previous
//     state, at the resourceVersion of the change.
//   - allowWatchBookmarks: a bookmark each minute and two seconds before the
//     timeout, once the watch cache is beyond the start of the watch.
//   - timeoutSeconds, or half an hour: a clean end.

// defaultTimeout is kube-apiserver's --min-request-timeout. (kube-apiserver
// draws a time between that and twice as much.)
const defaultTimeout = 30 * time.Minute

// A stream is a watch in progress.
type stream struct {
	s      *Server
	r      *Request
	w      http.ResponseWriter
	sel    *selection
	format Format
	buf    []byte
	begun  bool // an event has been sent

	from      uint64 // resourceVersion of its start
	next      int    // position of the next change
	bookmarks bool
	marked    uint64 // resourceVersion of the last eager bookmark
}

func (s *Server) serveWatch(w http.ResponseWriter, r *Request) {
	c := r.collection
	opts, format, wrong := s.collectionRequest(r)
	if wrong != nil {
		wrong.write(w)
		return
	}
	from := opts.rv
	out := &stream{s: s, r: r, w: w, sel: &opts.selection, format: format, from: from, bookmarks: opts.bookmarks}
	streaming := opts.initial != nil && *opts.initial
	everything := streaming || from == 0 && opts.initial == nil
	deadline := time.Now().Add(defaultTimeout)
	if opts.timeout > 0 {
		deadline = time.Now().Add(time.Duration(opts.timeout) * time.Second)
	}

	s.mu.Lock()
	var initial []version
	switch {
	case streaming && from > s.rv:
		head := s.rv
		s.mu.Unlock()
		tooLarge(from, head).write(w)
		return
	case everything:
		initial = c.now()
		c.progress, out.from = s.rv, s.rv
	case from == 0:
		out.from = s.rv
	}
	compacted := c.compacted
	out.next = c.position(out.from)
	s.mu.Unlock()

	w.Header().Set("Content-Type", format.ContentType(true))
	if !out.flush() { // send the headers before the first event
		return
	}
	if out.from < compacted {
		out.fail(expired("too old resource version: %d (%d)", out.from, compacted))
		return
	}
	for _, v := range initial {
		if out.sel.matches(v.Object) && !out.event("ADDED", v.Object, v.rv) {
			return
		}
	}
	if streaming && out.bookmarks && !out.bookmark(out.from, map[string]string{"k8s.io/initial-events-end": "true"}) {
		return
	}
	if out.flush() {
		out.follow(deadline)
	}
}

// follow sends changes and bookmarks until the watch ends.
func (o *stream) follow(deadline time.Time) {
	s, c := o.s, o.r.collection
	timer := time.NewTimer(0)
	defer timer.Stop()
	due, isDue := o.due(deadline), false
	for live := false; ; {
		s.mu.Lock()
		ended, ending, changed := s.endings != o.r.endings, s.ending, s.changed
		var changes []change
		if !ended {
			changes = c.log[o.next-c.dropped:]
		}
		at, head := c.bookmark(), s.rv
		s.mu.Unlock()
		if ended {
			o.end(ending)
			return
		}
		if !live {
			live = true
			if s.opts.Live != nil {
				s.opts.Live(o.r)
			}
			continue
		}
		o.next += len(changes)
		for i := range changes {
			if !o.change(&changes[i]) {
				return
			}
		}
		switch {
		case s.opts.EagerBookmarks && o.bookmarks && o.marked != head:
			if o.marked = head; !o.bookmark(head, nil) {
				return
			}
		case isDue && o.bookmarks && at > o.from:
			if !o.bookmark(at, nil) {
				return
			}
		}
		if isDue {
			due, isDue = o.due(deadline), false
		}
		if !o.flush() {
			return
		}
		timer.Reset(time.Until(due))
		select {
		case <-changed:
		case <-o.r.Context().Done():
			return
		case <-timer.C:
			if !time.Now().Before(deadline) {
				return
			}
			isDue = true
		}
	}
}

// due returns the time of the next bookmark, or of the end.
func (o *stream) due(deadline time.Time) time.Time {
	now := time.Now()
	next, last := now.Add(o.s.opts.Bookmarks), deadline.Add(-o.s.opts.LastBookmark)
	switch {
	case next.Before(last):
		return next
	case now.Before(last):
		return last
	}
	return deadline
}

// change sends the event that a change causes for this watch, if any.
func (o *stream) change(e *change) bool {
	if e.rv <= o.from {
		return true // the watch starts in the future
	}
	switch before, now := o.sel.matches(e.prev), o.sel.matches(e.object); {
	case before && now:
		return o.event("MODIFIED", e.object, e.rv)
	case now:
		return o.event("ADDED", e.object, e.rv)
	case before:
		return o.event("DELETED", e.prev, e.rv)
	}
	return true
}

// event appends an event. It returns false if the stream has ended.
func (o *stream) event(typ string, object *Object, rv uint64) bool {
	e, err := object.encoding(o.format, rv)
	if err != nil {
		return o.fail(notEncoded(err))
	}
	o.buf = o.format.AppendEvent(o.buf, typ, e, rv, !o.begun)
	o.begun = true
	return len(o.buf) < chunk || o.write()
}

func (o *stream) bookmark(rv uint64, annotations map[string]string) bool {
	buf, err := o.format.AppendBookmark(o.buf, rv, annotations, !o.begun)
	if err != nil {
		return false
	}
	o.buf, o.begun = buf, true
	return true
}

// fail ends the stream with an ERROR event, and returns false.
func (o *stream) fail(s *Status) bool {
	if buf, err := o.format.AppendError(o.buf, s); err == nil {
		o.buf = buf
		o.flush()
	}
	return false
}

func (o *stream) end(how ending) {
	switch how {
	case endCut:
		panic(http.ErrAbortHandler)
	case endExpired:
		o.fail(expired("too old resource version"))
	}
}

func (o *stream) write() bool {
	if len(o.buf) == 0 {
		return true
	}
	_, err := o.w.Write(o.buf)
	o.buf = o.buf[:0]
	return err == nil
}

func (o *stream) flush() bool {
	return o.write() && http.NewResponseController(o.w).Flush() == nil
}
