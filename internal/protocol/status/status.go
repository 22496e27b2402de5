// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package status makes and writes the errors of the HTTP API: Kubernetes
// Statuses, as kube-apiserver fills them in. Every 410 of the gateway is made by
// [Expired]; its text is that of [TooOld], or an error of the history.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// New returns a failure Status as the API server would fill it in.
func New(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    code,
		Reason:  reason,
		Message: message,
	}
}

// BadRequest is 400.
func BadRequest(message string) *metav1.Status {
	return New(http.StatusBadRequest, metav1.StatusReasonBadRequest, message)
}

// Forbidden is 403.
func Forbidden(message string) *metav1.Status {
	return New(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

// Unauthorized is 401.
func Unauthorized(message string) *metav1.Status {
	return New(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, message)
}

// NotFound is 404.
func NotFound(message string) *metav1.Status {
	return New(http.StatusNotFound, metav1.StatusReasonNotFound, message)
}

// ObjectNotFound is the 404 for one object of a resource, given as the API server
// names it, such as deployments.apps.
func ObjectNotFound(group, resource, name string) *metav1.Status {
	groupResource := resource
	if group != "" {
		groupResource += "." + group
	}
	s := NotFound(fmt.Sprintf("%s %q not found", groupResource, name))
	s.Details = &metav1.StatusDetails{Name: name, Group: group, Kind: resource}
	return s
}

// MethodNotAllowed is 405.
func MethodNotAllowed() *metav1.Status {
	return New(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource")
}

// Expired is 410: the resourceVersion can no longer be served.
func Expired(message string) *metav1.Status {
	return New(http.StatusGone, metav1.StatusReasonExpired, message)
}

// TooMany is 429 with a retry after some seconds.
func TooMany(message string, seconds int32) *metav1.Status {
	s := New(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message)
	s.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	return s
}

// Internal is 500.
func Internal(message string) *metav1.Status {
	return New(http.StatusInternalServerError, metav1.StatusReasonInternalError, message)
}

// Unavailable is 503. With retry it asks for one after a second, which client-go
// does for any method; leave the hint out where repeating a request could do harm.
func Unavailable(message string, retry bool) *metav1.Status {
	s := New(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, message)
	if retry {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	return s
}

// Timeout is 504.
func Timeout(message string) *metav1.Status {
	return New(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, message)
}

// TooLarge is the 504 for a resourceVersion above the current one, as the API
// server words it.
func TooLarge(rv, current uint64) *metav1.Status {
	s := New(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
		fmt.Sprintf("Too large resource version: %d, current: %d", rv, current))
	s.Details = &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}}
	return s
}

// TooOld is the message of a 410 for an RV; oldest is one that can be served.
func TooOld(rv, oldest uint64) string {
	return fmt.Sprintf("too old resource version: %d (%d)", rv, oldest)
}

// An ExpiredError is the message of a 410, as an error.
type ExpiredError string

func (e ExpiredError) Error() string { return string(e) }

// An Error is a Status as an error.
type Error struct{ *metav1.Status }

func (e *Error) Error() string { return e.Message }

// Write answers a request with a Status in JSON, encoded and indented as the API
// server does it.
func Write(w http.ResponseWriter, r *http.Request, s *metav1.Status) {
	s.Kind, s.APIVersion = "Status", "v1"
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	var body []byte
	var err error
	if WantsPretty(r) {
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
	w.Write(body) //nolint:errcheck // the client is gone
}

// Fail answers a request that failed: with the Status of an [Error], with 500 for another
// error. A 405 has the methods that are allowed.
func Fail(w http.ResponseWriter, r *http.Request, err error, allowed string) {
	refusal, ok := errors.AsType[*Error](err)
	if !ok {
		refusal = &Error{Status: Internal(err.Error())}
	}
	if refusal.Code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allowed)
	}
	Write(w, r, refusal.Status)
}

// Warn adds a warning to an answer. kubectl prints it.
func Warn(h http.Header, text string) { h.Add("Warning", fmt.Sprintf("299 - %q", text)) }

// WantsPretty is the API server's rule for indenting JSON: the pretty parameter
// decides; without it, curl, wget and browsers get indented JSON.
func WantsPretty(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") || strings.Contains(r.URL.RawQuery, "%") {
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
