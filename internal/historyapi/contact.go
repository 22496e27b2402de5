// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"net/http"
	"slices"

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
	contact := c.Upstream.Contact()
	if contact.Err != nil {
		return &api.Upstream{Reason: upstream.Cause(contact.Err), LastContact: contact.Since.UTC()}
	}
	return &api.Upstream{Answers: true, LastContact: contact.Last.UTC()}
}

// warnSilence adds a warning if the API server does not answer, and the range of the
// request ends after its last contact. The index has it in its body.
func (h *Handler) warnSilence(header http.Header, r *http.Request) {
	if h.Upstream == nil {
		return
	}
	contact := h.Upstream.Contact()
	name, _ := cutPath(r.URL.Path)
	parameters := endpoints[name].parameters
	if contact.Err == nil || contact.Since.IsZero() || len(parameters) == 0 {
		return
	}
	query := r.URL.Query()
	for _, end := range []string{"until", "to", "at"} {
		if !slices.Contains(parameters, end) || query.Get(end) == "" {
			continue
		}
		if when, err := kube.ParseMoment(query.Get(end), h.Past.Present()); err != nil || !contact.Unknown(when.At) {
			return // also a resourceVersion: what was recorded then is final
		}
	}
	status.Warn(header, contact.Warning())
}
