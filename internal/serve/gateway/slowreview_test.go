// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/selfreview"
)

// A slowBody is a body that does not arrive. Its read deadline is that of a connection.
type slowBody struct {
	*httptest.ResponseRecorder
	io.Reader
	io.Closer
	expired *time.Timer
}

func newSlowBody() *slowBody {
	r, w := io.Pipe()
	b := &slowBody{ResponseRecorder: httptest.NewRecorder(), Reader: r, Closer: r}
	b.expired = time.AfterFunc(time.Hour, func() { w.CloseWithError(os.ErrDeadlineExceeded) })
	return b
}

func (b *slowBody) SetReadDeadline(t time.Time) error {
	if b.expired.Stop(); !t.IsZero() {
		b.expired.Reset(time.Until(t))
	}
	return nil
}

// TestSlowReviews: reviews whose bodies do not arrive end in time, or with the gateway. Of a
// user, they leave room for those of others.
func TestSlowReviews(t *testing.T) {
	metrics, err := newRequestMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := &Gateway{tracker: httpstream.NewTracker(nil, nil), reviews: newReviews(true), reads: &reads{recording: true}}
			review := func(user string, w http.ResponseWriter, body io.Reader) {
				r := httptest.NewRequestWithContext(fairness.WithUser(t.Context(), fairness.User{Name: user}), http.MethodPost,
					"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
				g.answerReview(&responseRecorder{ResponseWriter: w, metrics: metrics, request: r}, r, selfreview.Access, "")
			}
			start := time.Now()
			var wg sync.WaitGroup
			slow := make([]*slowBody, maxReviewsPerUser)
			for i := range slow {
				slow[i] = newSlowBody()
				wg.Go(func() { review("slow", slow[i], slow[i]) })
			}
			synctest.Wait()
			// One more of that user waits for a place.
			var answered atomic.Bool
			const del = `{"spec":{"resourceAttributes":{"verb":"delete","resource":"pods"}}}`
			wg.Go(func() {
				review("slow", httptest.NewRecorder(), strings.NewReader(del))
				answered.Store(true)
			})
			synctest.Wait()
			other := httptest.NewRecorder()
			review("other", other, strings.NewReader(del))
			if other.Code != http.StatusCreated || time.Since(start) > 0 || answered.Load() {
				t.Errorf("another user: %d after %v; the same one is answered: %v", other.Code, time.Since(start), answered.Load())
			}
			want := reviewTime
			if cut {
				g.tracker.Cut()
				want = 0
			}
			wg.Wait()
			if took := time.Since(start); took != want {
				t.Errorf("cut %v: ended after %v, want %v", cut, took, want)
			}
			for _, b := range slow {
				if b.Code < http.StatusBadRequest {
					t.Errorf("%d %s", b.Code, b.Body)
				}
			}
		})
	}
}
