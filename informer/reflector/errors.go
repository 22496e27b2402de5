// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A RefusedError reports that the API server does not let the collection be
// listed or watched. It wraps a [*StatusError].
type RefusedError struct {
	// Code is the HTTP status: 401, 403, 404 or 405; 429 or 500 if an API server
	// that is ready cannot read the collection, see [Options].Ready; or 501 if the
	// answer to a list has no resourceVersion that a watch could start from.
	Code int
	// Message is that of the API server.
	Message string

	notList    bool // the answer was no list
	unreadable bool // see Reflector.unreadable
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused with %d: %s", e.Code, e.Message)
}

// Unwrap returns the answer as a [*StatusError].
func (e *RefusedError) Unwrap() error { return &StatusError{Code: e.Code, Message: e.Message} }

func isRefusal(err error) bool {
	_, ok := errors.AsType[*RefusedError](err)
	return ok
}

// A StatusError is an API server's answer to a list or a watch other than 200, or the
// Status of an ERROR event. It is wrapped by the errors of an informer.
type StatusError struct {
	Code       int           // HTTP status, such as 400 or 406
	Message    string        // of the Status, or the quoted body
	RetryAfter time.Duration // how long the API server asks to wait; 0 if it does not

	isStatus bool // the answer was a Status
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// ErrSilent: a watch was closed that only appeared to be open, or was behind. It is the LastError
// of a [Status] until a check of the next one has found nothing missing.
var ErrSilent = errors.New("a watch only appeared to be open, or was behind")

var (
	// errExpired: the upstream has compacted the events after our RV (410).
	errExpired = errors.New("history expired")
	// errDiverged: the upstream's history does not continue the sink's.
	errDiverged = errors.New("history diverged")
	// errShortWatch: a stream ended in order within minStream.
	errShortWatch = errors.New("very short watch")
	// errUnproven: the last known events did not arrive again in time.
	errUnproven = errors.New("watch does not send the last known events")
	// errUnanswered: the headers of the response to a watch did not arrive in time.
	errUnanswered = errors.New("watch not answered")
	// errColumnsChanged: the upstream prints the objects in other Table
	// columns than it did for the list.
	errColumnsChanged = errors.New("table columns changed")
	// errNoStreamingList: the upstream does not serve streaming lists
	// (KEP-3157), or not in time.
	errNoStreamingList = errors.New("no streaming list")
)

// isMalformed reports whether err says that a frame or a list could not be
// parsed.
func isMalformed(err error) bool {
	return errors.Is(err, scan.ErrSyntax) || errors.Is(err, scan.ErrNotObject) || errors.Is(err, scan.ErrProtobuf)
}

// A retryAfterError is an error of an upstream that named a time to wait.
type retryAfterError struct {
	error
	wait time.Duration
}

func (e retryAfterError) Unwrap() error { return e.error }

// parseStatus reads a Status in JSON or protobuf. Any other body is quoted.
func parseStatus(code int, body []byte) *StatusError {
	if s, err := scan.ParseStatus(body); err == nil {
		return &StatusError{cmp.Or(s.Code, code), s.Message, parseRetryAfter(strconv.Itoa(s.RetryAfter)), true}
	}
	var status struct {
		Kind, Message string
		Code          int
		Details       struct{ RetryAfterSeconds int }
	}
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return &StatusError{Code: code, Message: fmt.Sprintf("%s %.200q", http.StatusText(code), body)}
	}
	if status.Code != 0 {
		code = status.Code
	}
	return &StatusError{code, status.Message, parseRetryAfter(strconv.Itoa(status.Details.RetryAfterSeconds)), true}
}

// asError returns the error that the reflector acts on.
func (e *StatusError) asError() error {
	switch e.Code {
	case http.StatusGone:
		return fmt.Errorf("%w: %w", errExpired, e)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return &RefusedError{Code: e.Code, Message: e.Message}
	}
	if e.RetryAfter > 0 {
		return retryAfterError{e, e.RetryAfter}
	}
	return e
}

// unreadable reports whether the answer may mean that the API server cannot read this
// collection: an object cannot be converted or decrypted (500), or the API server's own
// cache gets no list of it for such a reason (429, "storage is (re)initializing"). An API
// server that is overloaded answers 429 without a Status; one that is not ready may
// answer all collections so.
func (e *StatusError) unreadable() bool {
	return e.isStatus && (e.Code == http.StatusInternalServerError ||
		e.Code == http.StatusTooManyRequests && strings.Contains(e.Message, "(re)initializing"))
}

// maxRetryAfter limits how long an upstream can send a reflector away: it may
// be healthy again much sooner than it expects.
const maxRetryAfter = time.Minute

// parseRetryAfter reads the value of a Retry-After header, seconds or a date.
func parseRetryAfter(value string) time.Duration {
	var d time.Duration
	if seconds, err := strconv.Atoi(value); err == nil {
		d = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), maxRetryAfter)
}
