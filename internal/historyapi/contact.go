// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"net/http"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/status"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
)

// upstreamState says whether the API server answers; nil for a finished recording.
func (c *call) upstreamState() *api.Upstream {
	if c.Upstream == nil || c.Recording().State == api.RecordingEnded {
		return nil
	}
	if c.contact.Err != nil {
		return &api.Upstream{Reason: upstream.Cause(c.contact.Err), LastContact: c.contact.Since.UTC()}
	}
	return &api.Upstream{Answers: true, LastContact: c.contact.Last.UTC()}
}

// lastKnown returns the last time until one at which the API server answered: what has not
// failed since may have, so that nothing recovers by waiting.
func (c *call) lastKnown(at time.Time) time.Time {
	if since := c.contact.Since; c.contact.Err != nil && !since.IsZero() && since.Before(at) {
		return since
	}
	return at
}

// ends are the parameters that name a moment or the end of a range.
var ends = []string{"until", "to", "at"}

// contact returns what is known of the API server up to the end of the range of a request. It
// has no error if the range ended before that of what is known.
func (h *Handler) contact(r *http.Request, now time.Time) upstream.Contact {
	if h.Upstream == nil {
		return upstream.Contact{}
	}
	known, end, query := h.Upstream.Contact(), now, r.URL.Query()
	for _, parameter := range ends {
		text := query.Get(parameter)
		if text == "" {
			continue
		}
		when, err := kube.ParseMoment(text, now)
		if err != nil || when.RV != 0 { // what was recorded then is final
			return upstream.Contact{Last: known.Last}
		}
		end = when.At
	}
	if end.After(now) {
		end = now
	}
	if known = h.Upstream.ContactUntil(r.Context(), end); !known.Unknown(end) {
		return upstream.Contact{Last: known.Last}
	}
	return known
}

// warnSilence adds a warning if the API server has not answered until the end of the range of
// the request. The index has it in its body.
func warnSilence(header http.Header, r *http.Request, contact upstream.Contact) {
	if name, _ := cutPath(r.URL.Path); contact.Err != nil && !contact.Since.IsZero() && len(endpoints[name].parameters) > 0 {
		status.Warn(header, contact.Warning())
	}
}
