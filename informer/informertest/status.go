// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// A Status is an error of the API, as metav1.Status.
type Status struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   struct{} `json:"metadata"`
	Status     string   `json:"status,omitempty"`
	Message    string   `json:"message,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	Details    *Details `json:"details,omitempty"`
	Code       int      `json:"code,omitempty"`
}

// Details are those of a [Status].
type Details struct {
	Name              string  `json:"name,omitempty"`
	Group             string  `json:"group,omitempty"`
	Kind              string  `json:"kind,omitempty"`
	Causes            []Cause `json:"causes,omitempty"`
	RetryAfterSeconds int     `json:"retryAfterSeconds,omitempty"`
}

// A Cause is one of [Details].
type Cause struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// Error implements error.
func (s *Status) Error() string { return s.Message }

// failure returns the Status of an error.
func failure(code int, reason, format string, args ...any) *Status {
	return &Status{
		Kind: "Status", APIVersion: "v1",
		Status: "Failure", Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func badRequest(format string, args ...any) *Status {
	return failure(http.StatusBadRequest, "BadRequest", format, args...)
}

func expired(format string, args ...any) *Status {
	return failure(http.StatusGone, "Expired", format, args...)
}

// notEncoded is the error of an object that a format cannot have.
func notEncoded(err error) *Status {
	return failure(http.StatusInternalServerError, "InternalError", "%v", err)
}

func notAcceptable() *Status {
	return failure(http.StatusNotAcceptable, "NotAcceptable", "only the following media types are accepted: application/json")
}

func notFound(r *Request) *Status {
	if r.collection == nil || r.Name == "" {
		s := failure(http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		s.Details = &Details{Causes: []Cause{{Reason: "UnexpectedServerResponse", Message: "404 page not found"}}}
		return s
	}
	return r.refused(http.StatusNotFound, "NotFound", "%s %q not found", r.Resource.FullName(), r.Name)
}

// refused returns the Status of an error about the requested object.
func (r *Request) refused(code int, reason, format string, args ...any) *Status {
	s := failure(code, reason, format, args...)
	s.Details = &Details{Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Name}
	return s
}

// tooLarge is the error of a resourceVersion that the server has not reached.
func tooLarge(rv, head uint64) *Status {
	s := failure(http.StatusGatewayTimeout, "Timeout", "Timeout: Too large resource version: %d, current: %d", rv, head)
	s.Details = &Details{RetryAfterSeconds: 1, Causes: []Cause{{Reason: "ResourceVersionTooLarge", Message: "Too large resource version"}}}
	return s
}

// WriteStatus answers a request with a Status, for a [Control].
func WriteStatus(w http.ResponseWriter, code int, reason, message string) {
	failure(code, reason, "%s", message).write(w)
}

func (s *Status) write(w http.ResponseWriter) { WriteJSON(w, s.Code, s) }

// WriteJSON answers a request with any JSON, for a [Control].
func WriteJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", contentJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // fails if the client has gone
}

// mustMarshal encodes values that tests and this package build.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("informertest: " + err.Error())
	}
	return b
}
