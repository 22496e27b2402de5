// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package passthrough

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

// DiscoveryPatience is how long a request for discovery waits for the API server if the
// gateway has its last answer.
const DiscoveryPatience = 2 * time.Second

// errSilent: the API server gave no answer to a request in time, or one to a request for discovery
// that says nothing about it: a server error, or 429.
var errSilent = errors.New("no answer")

// lastDocument returns the API server's last answer to a request for discovery, nil if
// there is none. That answer was to the gateway's identity, so a caller with credentials
// of its own does not get it (T8).
func (p *Handler) lastDocument(r *http.Request) *upstream.Document {
	if p.Shared != nil || request.Identity(r.Header) != nil {
		return nil
	}
	return p.document(r)
}

// isGroupVersion reports whether a path of discovery is that of a group version. An
// aggregated API server may be out of service while the API server answers.
func isGroupVersion(path string) bool {
	return strings.Contains(strings.TrimSuffix(path, "/"), "/apis/")
}

// writeDocument answers with the API server's last answer.
func (p *Handler) writeDocument(w http.ResponseWriter, d *upstream.Document) {
	h := w.Header()
	h.Set("Content-Type", d.Type)
	h.Set("Content-Length", strconv.Itoa(len(d.Body)))
	h.Set("Cache-Control", "no-cache, private")
	p.confine(h)
	_, _ = w.Write(d.Body) // an error means that the client is gone
}

// document returns the API server's last answer to a request for discovery, nil if there
// is none.
func (p *Handler) document(r *http.Request) *upstream.Document {
	if p.Documents == nil || r.Method != http.MethodGet || request.IsUpgrade(r) {
		return nil
	}
	return p.Documents.Find(strings.TrimSuffix(r.URL.Path, "/"), strings.Join(r.Header["Accept"], ","))
}
