// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/selfreview"
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

// Reviews whose bodies are in memory, which have to arrive within reviewTime.
const (
	maxReviews        = 64
	maxReviewsPerUser = 8
	reviewTime        = 10 * time.Second
)

func newReviews(users bool) *fairness.Queue {
	o := fairness.QueueOptions{Slots: maxReviews, MaxWaiting: maxReviews, Wait: reviewTime}
	if users {
		o.PerKey = maxReviewsPerUser
	}
	return fairness.NewQueue(o)
}

// A reviewBody has a deadline until it was read: later, that would end the request.
type reviewBody struct {
	io.ReadCloser
	ctl *http.ResponseController
}

func (b *reviewBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ctl.SetReadDeadline(time.Time{}) //nolint:errcheck // there is nothing else to do
	}
	return n, err
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
	cut, release, _ := g.tracker.Bind(r.Context(), false)
	defer release()
	slot, err := g.users.Slot(cut, g.reviews, "other reviews are being read: try again", 1)
	if err != nil {
		status.Fail(rec, r, err, http.MethodPost)
		return
	}
	defer slot.Release()
	// A client that does not send its body must not delay others, or the end of the gateway.
	ctl := http.NewResponseController(rec)
	ctl.SetReadDeadline(time.Now().Add(reviewTime)) //nolint:errcheck // there is nothing else to do
	r.Body = &reviewBody{r.Body, ctl}
	defer context.AfterFunc(cut, func() {
		ctl.SetReadDeadline(time.Now()) //nolint:errcheck // see above
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
