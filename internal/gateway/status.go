// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newStatus returns a failure Status as the API server would fill it in.
func newStatus(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Reason:  reason,
		Message: message,
	}
}

func forbidden(message string) *metav1.Status {
	return newStatus(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

func methodNotAllowed() *metav1.Status {
	return newStatus(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource")
}

// unavailable asks for a retry after a second, which client-go honours for
// any method; leave the hint out where repeating a request could do harm.
func unavailable(message string, retry bool) *metav1.Status {
	s := newStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, message)
	if retry {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	return s
}

// tooMany asks for a retry after some seconds, since others are being served.
func tooMany(message string, seconds int32) *metav1.Status {
	s := newStatus(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message)
	s.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	return s
}

// writeStatus answers a request with a Status in JSON, encoded and indented
// as the API server does it.
func writeStatus(w http.ResponseWriter, r *http.Request, s *metav1.Status) {
	s.Kind, s.APIVersion = "Status", "v1"
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	var body []byte
	var err error
	if wantsPretty(r) {
		body, err = json.MarshalIndent(s, "", "  ")
	} else {
		body, err = json.Marshal(s)
		body = append(body, '\n')
	}
	if err != nil {
		// A Status is strings and numbers; it always encodes.
		panic(err)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(int(s.Code))
	w.Write(body) //nolint:errcheck // nobody is left to tell
}

// wantsPretty is the API server's rule for indenting JSON: the pretty
// parameter decides, and people's tools get it when there is none.
func wantsPretty(r *http.Request) bool {
	if mentions(r, "pretty") {
		if v := r.URL.Query().Get("pretty"); v != "" {
			pretty, _ := strconv.ParseBool(v)
			return pretty
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") ||
		strings.HasPrefix(agent, "Wget") ||
		strings.HasPrefix(agent, "Mozilla/5.0")
}

// A goneError is why a watch, or an exact list, cannot go on: 410 at the API.
type goneError string

func (e goneError) Error() string { return string(e) }

// tooLarge is what a client is told who wants an RV that is yet to come, as the
// API server tells it.
func tooLarge(rv, current uint64) *metav1.Status {
	s := newStatus(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
		fmt.Sprintf("Too large resource version: %d, current: %d", rv, current))
	s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}}
	return s
}

func expiredFor(message string) *metav1.Status {
	return newStatus(http.StatusGone, metav1.StatusReasonExpired, message)
}

func notFound(message string) *metav1.Status {
	return newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, message)
}

func badRequest(message string) *metav1.Status {
	return newStatus(http.StatusBadRequest, metav1.StatusReasonBadRequest, message)
}
