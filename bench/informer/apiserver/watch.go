// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A response is that to one watch.
type response struct {
	*encoding
	w     http.ResponseWriter
	buf   []byte
	begun bool // there has been an event
}

func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, e *encoding) {
	query := r.URL.Query()
	bad := func(message string) { writeStatus(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, message) }
	var from int64
	if rv := query.Get("resourceVersion"); rv != "" {
		var err error
		if from, err = strconv.ParseInt(rv, 10, 64); err != nil || from < 0 {
			bad("resourceVersion is not a number")
			return
		}
	}
	initial := query.Get("sendInitialEvents") == "true"
	if match := query.Get("resourceVersionMatch"); initial && match != "NotOlderThan" || !query.Has("sendInitialEvents") && match != "" {
		bad("sendInitialEvents and resourceVersionMatch=NotOlderThan belong together")
		return
	}
	bookmarks := query.Get("allowWatchBookmarks") == "true"
	if initial && !bookmarks {
		bad("sendInitialEvents needs allowWatchBookmarks")
		return
	}
	var timeout, nearEnd <-chan time.Time
	if t := query.Get("timeoutSeconds"); t != "" && t != "0" {
		seconds, err := strconv.Atoi(t)
		if err != nil {
			bad("timeoutSeconds is not a number")
			return
		}
		timeout = time.After(time.Duration(seconds) * time.Second)
		if bookmarks {
			nearEnd = time.After(time.Duration(seconds)*time.Second - bookmarkBefore)
		}
	}
	s.mu.Lock()
	rvs, head, compacted, expiries := slices.Clone(s.rvs), s.headLocked(), s.compacted, s.expiries
	s.mu.Unlock()
	if from > head {
		status := tooLarge(from, head)
		writeJSON(w, int(status.Code), status)
		return
	}
	w.Header().Set("Content-Type", e.watchType())
	out := &response{encoding: e, w: w, buf: make([]byte, 0, chunk+chunk/4)}
	if !out.flush() { // the headers, with no event yet
		return
	}
	switch {
	case initial || from == 0 && query.Get("sendInitialEvents") != "false":
		for i, o := range e.objects {
			if !out.event("ADDED", o, rvs[i]) {
				return
			}
		}
		if initial && !out.other("BOOKMARK", bookmark(e, head, map[string]string{metav1.InitialEventsAnnotationKey: "true"})) {
			return
		}
		from = head
	case from == 0:
		from = head
	case from < compacted:
		out.gone()
		return
	}
	if out.flush() {
		s.follow(expiries)
		s.stream(out, r, from, expiries, bookmarks, timeout, nearEnd)
	}
}

// bookmarkBefore is how long before its end a watch has its last bookmark.
const bookmarkBefore = 2 * time.Second

// stream sends what changes after a revision until the client goes, the time
// is over or the watch expires.
func (s *Server) stream(out *response, r *http.Request, from int64, expiries int, bookmarks bool, timeout, nearEnd <-chan time.Time) {
	var tick <-chan time.Time
	if bookmarks {
		ticker := time.NewTicker(s.bookmarks)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		s.mu.Lock()
		changed, expired := s.changed, s.expiries != expiries
		var events []int
		if !expired {
			events = s.log[from-s.compacted:]
		}
		s.mu.Unlock()
		if expired {
			out.gone()
			return
		}
		for _, i := range events {
			from++
			if !out.event("MODIFIED", out.objects[i], from) {
				return
			}
		}
		if !out.flush() {
			return
		}
		select {
		case <-changed:
		case <-tick:
			if !out.other("BOOKMARK", bookmark(out.encoding, from, nil)) || !out.flush() {
				return
			}
		case <-nearEnd:
			if !out.other("BOOKMARK", bookmark(out.encoding, from, nil)) || !out.flush() {
				return
			}
		case <-timeout:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (o *response) event(typ string, obj object, rv int64) bool {
	o.buf = o.appendEvent(o.buf, typ, obj, rv, !o.begun)
	o.begun = true
	return len(o.buf) < chunk || o.write()
}

func (o *response) other(typ string, obj runtime.Object) bool {
	var err error
	o.buf, err = o.appendOther(o.buf, typ, obj)
	return err == nil
}

// gone ends the watch the way the API server's watch cache does: with an event
// in a good response.
func (o *response) gone() {
	if o.other("ERROR", newStatus(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")) {
		o.flush()
	}
}

func (o *response) write() bool {
	_, err := o.w.Write(o.buf)
	o.buf = o.buf[:0]
	return err == nil
}

func (o *response) flush() bool {
	return o.write() && http.NewResponseController(o.w).Flush() == nil
}

func bookmark(e *encoding, rv int64, annotations map[string]string) runtime.Object {
	p := &corev1.Pod{}
	p.APIVersion, p.Kind = "v1", cmp.Or(e.kind, "Pod")
	p.ResourceVersion, p.Annotations = strconv.FormatInt(rv, 10), annotations
	return e.view(p)
}
