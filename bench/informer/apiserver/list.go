// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chunk is how much is written at once, at least.
const chunk = 128 << 10

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, e *encoding) {
	s.mu.Lock()
	rvs, head := slices.Clone(s.rvs), s.headLocked()
	s.mu.Unlock()
	from, to, status := page(r.URL.Query(), len(rvs), head)
	if status != nil {
		writeJSON(w, int(status.Code), status)
		return
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(head, 10)}
	if to < len(rvs) {
		meta.Continue = encodeContinue(head, to)
		meta.RemainingItemCount = new(int64(len(rvs) - to))
	}
	size := e.size
	if to-from < len(rvs) {
		size = 0
		for _, o := range e.objects[from:to] {
			size += e.itemSize(o)
		}
	}
	w.Header().Set("Content-Type", e.listType())
	buf := e.appendListHead(make([]byte, 0, chunk+chunk/4), meta, size)
	for i := from; i < to; i++ {
		buf = e.appendItem(buf, e.objects[i], rvs[i], i == from)
		if len(buf) >= chunk {
			if _, err := w.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
	}
	w.Write(e.appendListTail(buf))
}

// page returns which of the items are asked for, or why that cannot be.
func page(query url.Values, items int, head int64) (from, to int, status *metav1.Status) {
	bad := func(format string, args ...any) (int, int, *metav1.Status) {
		return 0, 0, newStatus(http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf(format, args...))
	}
	expired := func() (int, int, *metav1.Status) {
		return 0, 0, newStatus(http.StatusGone, metav1.StatusReasonExpired, "The resourceVersion for the provided list is too old.")
	}
	rv, match, token := query.Get("resourceVersion"), query.Get("resourceVersionMatch"), query.Get("continue")
	limit := 0
	if l := query.Get("limit"); l != "" {
		var err error
		if limit, err = strconv.Atoi(l); err != nil || limit < 0 {
			return bad("limit: %q is not a number", l)
		}
	}
	var asked int64
	if rv != "" {
		var err error
		if asked, err = strconv.ParseInt(rv, 10, 64); err != nil {
			return bad("resourceVersion: %q is not a number", rv)
		}
	}
	switch {
	case token != "" && rv != "" && rv != "0":
		return bad("specifying resource version is not allowed when using continue")
	case token != "":
		at, next, err := decodeContinue(token)
		if err != nil || next > items {
			return bad("continue key is not valid")
		}
		// The items of then are gone as soon as anything has changed.
		if at != head {
			return expired()
		}
		from = next
	case match != "" && rv == "":
		return bad("resourceVersionMatch is forbidden unless resourceVersion is provided")
	case match == "Exact" && asked == 0:
		return bad("resourceVersionMatch: Exact is forbidden for resourceVersion \"0\"")
	case asked > head:
		return 0, 0, tooLarge(asked, head)
	case asked != 0 && asked != head && (match == "Exact" || match == "" && limit > 0):
		return expired()
	case asked == 0 && rv != "" && match == "":
		limit = 0 // the watch cache, from which this is answered, ignores it
	}
	if to = items; limit > 0 {
		to = min(to, from+limit)
	}
	return from, to, nil
}

func encodeContinue(rv int64, next int) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d/%d", rv, next))
}

func decodeContinue(token string) (rv int64, next int, err error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%d/%d", &rv, &next)
	}
	if err == nil && next < 0 {
		err = fmt.Errorf("negative")
	}
	return rv, next, err
}
