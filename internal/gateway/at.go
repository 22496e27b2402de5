// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/access"
	"github.com/watchkeeper/watchkeeper/internal/request"
	"github.com/watchkeeper/watchkeeper/internal/selfreview"
	"github.com/watchkeeper/watchkeeper/internal/status"
)

// answerAt answers a request for the past, below the prefix.
func (g *Gateway) answerAt(rec *responseRecorder, r *http.Request) {
	when, inner, err := request.CutAt(r, g.reads.past.Present())
	// Discovery is of now. kubectl hides the error of a request for discovery, but shows
	// that of the list after it.
	if err != nil && (inner == nil || !request.IsDiscovery(inner.URL.Path)) {
		rec.source = sourceHistory
		status.Write(rec, r, status.BadRequest(err.Error()+"; the past of a path is below /at/<when>, as in /at/10m/api/v1/pods"))
		return
	}
	rec.request = inner
	if refusal := g.checkAPI(inner); refusal != nil {
		status.Write(rec, inner, refusal)
		return
	}
	rec.source = sourceHistory
	if refusal := g.checkCaller(inner, pastPath); refusal != nil {
		status.Write(rec, inner, refusal)
		return
	}
	kind := selfreview.Of(inner)
	switch {
	case kind != selfreview.None:
		g.answerReview(rec, inner, kind, "the past is read-only")
	case inner.Method != http.MethodGet && inner.Method != http.MethodHead, opensConnection(inner):
		rec.Header().Set("Allow", "GET, HEAD")
		status.Write(rec, inner, status.New(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the past can only be read: "+r.URL.Path+" is for LIST, GET and WATCH"))
	case request.IsDiscovery(inner.URL.Path):
		g.passThrough(rec, inner)
	case inner.Method == http.MethodHead:
		rec.Header().Set("Allow", "GET")
		status.Write(rec, inner, status.MethodNotAllowed())
	default:
		cut, release, _ := g.tracker.Bind(inner.Context(), false)
		defer release()
		caller := access.CallerOf(cut)
		if caller != nil {
			if refusal := tooLong(inner); refusal != nil {
				status.Write(rec, inner, refusal)
				return
			}
			inner = request.WithoutCredentials(inner)
		}
		if caller != nil && request.IsWatch(inner) {
			a, err := access.AttributesOf(inner, caller.User)
			if err != nil {
				status.Write(rec, inner, status.BadRequest(err.Error()))
				return
			}
			if refusal := g.permit(rec, inner, caller, a, access.PathAttributes(caller.User, pastPath)); refusal != nil {
				status.Write(rec, inner, refusal)
				return
			}
			defer rec.release()
		}
		g.reads.serveAt(rec, inner.WithContext(cut), when)
	}
}

// answerReview answers a review of what the client may do, where it can only read. The
// reason is why writes are denied.
func (g *Gateway) answerReview(rec *responseRecorder, r *http.Request, kind selfreview.Kind, reason string) {
	h := selfreview.Handler{Reason: reason}
	if !g.reads.recording {
		h.Forward = func(w http.ResponseWriter, r *http.Request) {
			rec.source = sourcePassthrough
			g.forward(w, r)
		}
	}
	// A client that does not send its body must not delay the end of the gateway.
	cut, release, _ := g.tracker.Bind(r.Context(), false)
	defer release()
	defer context.AfterFunc(cut, func() {
		http.NewResponseController(rec).SetReadDeadline(time.Now()) //nolint:errcheck // there is nothing else to do
	})()
	h.Serve(rec, r, kind)
}

// opensConnection reports whether a request is for a connection to something in
// the cluster rather than a watch.
func opensConnection(r *http.Request) bool {
	return request.IsInteractive(r.URL.Path) || upgradesOther(r)
}

// upgradesOther reports whether a request asks to switch protocols, other than for a watch.
func upgradesOther(r *http.Request) bool {
	return request.IsUpgrade(r) && !(request.IsWebSocket(r) && request.IsWatch(r))
}
