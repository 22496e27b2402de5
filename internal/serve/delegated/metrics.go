// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A timedTransport measures each attempt of a review.
type timedTransport struct {
	next     http.RoundTripper
	duration *prometheus.HistogramVec
}

// newTimedTransport registers its metric in reg, unless that is nil.
func newTimedTransport(next http.RoundTripper, reg prometheus.Registerer) (*timedTransport, error) {
	t := &timedTransport{next: next, duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "watchkeeper_review_duration_seconds",
		Help: "Time in which the API server answered who a caller is (tokenreviews) and what it may do (subjectaccessreviews), by status code; " +
			"<error> is no answer.",
		Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
	}, []string{"review", "code"})}
	for _, review := range []string{"tokenreviews", "subjectaccessreviews"} {
		t.duration.WithLabelValues(review, strconv.Itoa(http.StatusCreated))
	}
	if reg != nil {
		return t, reg.Register(t.duration)
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper. Only reviews are POSTs.
func (t *timedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost {
		return t.next.RoundTrip(r)
	}
	began, code := time.Now(), "<error>"
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	t.duration.WithLabelValues(path.Base(r.URL.Path), code).Observe(time.Since(began).Seconds())
	return resp, err
}
