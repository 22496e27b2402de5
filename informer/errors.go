// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

var (
	// ErrRunning is what Run returns when the informer runs already.
	ErrRunning = errors.New("the informer is running")
	// ErrNotSynced is wrapped by what WaitSynced returns.
	ErrNotSynced = errors.New("not synced")
)

// ErrAllNamespaces is what AddNamespace and RemoveNamespace return when all
// namespaces are watched.
var ErrAllNamespaces = errors.New("all namespaces are watched")

// A RefusedError is the answer of an API server that will not have the
// collection listed or watched.
type RefusedError struct {
	// Code is the HTTP status: 401, 403, 404 or 405; or 501 where the answer
	// to a list is nothing that a watch could start from.
	Code    int
	Message string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused with %d: %s", e.Code, e.Message)
}

var (
	// errExpired: the upstream no longer has the history behind our RV.
	errExpired = errors.New("history is expired")
	// errDiverged: what the upstream says cannot follow what is known.
	errDiverged = errors.New("history diverged")
	// errHasty: a stream ended as soon as it had begun.
	errHasty = errors.New("the stream ended at once")
	// errReprinted: the upstream prints the objects in other columns than
	// before.
	errReprinted = errors.New("other columns")
	// errNoWatchList: the upstream does not do streaming lists.
	errNoWatchList = errors.New("no streaming list")
)

// A retryAfter is an error of an upstream that said when to come back.
type retryAfter struct {
	error
	wait time.Duration
}

func (e retryAfter) Unwrap() error { return e.error }

// isMalformed reports whether an error is of a frame that is not one.
func isMalformed(err error) bool {
	return errors.Is(err, scan.ErrSyntax) || errors.Is(err, scan.ErrNotObject) || errors.Is(err, scan.ErrProtobuf)
}

// A statusError is an answer of the API server that is an error.
type statusError struct {
	code       int
	message    string
	retryAfter time.Duration
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.message) }

// parseStatus reads a Status, in JSON or protobuf; what is not one is quoted.
func parseStatus(code int, body []byte) *statusError {
	if s, err := scan.ParseStatus(body); err == nil {
		return &statusError{cmp.Or(s.Code, code), s.Message, parseRetryAfter(strconv.Itoa(s.RetryAfter))}
	}
	var status struct {
		Kind, Message string
		Code          int
		Details       struct{ RetryAfterSeconds int }
	}
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return &statusError{code: code, message: fmt.Sprintf("%s %.200q", http.StatusText(code), body)}
	}
	if status.Code != 0 {
		code = status.Code
	}
	return &statusError{code, status.Message, parseRetryAfter(strconv.Itoa(status.Details.RetryAfterSeconds))}
}

// asError says what the answer means to the state machine.
func (e *statusError) asError() error {
	switch e.code {
	case http.StatusGone:
		return fmt.Errorf("%w: %w", errExpired, e)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return &RefusedError{e.code, e.message}
	}
	if e.retryAfter > 0 {
		return retryAfter{e, e.retryAfter}
	}
	return e
}

// parseRetryAfter reads a Retry-After header; a minute at the most is waited.
func parseRetryAfter(value string) time.Duration {
	var d time.Duration
	if seconds, err := strconv.Atoi(value); err == nil {
		d = time.Duration(min(seconds, 60)) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), time.Minute)
}
