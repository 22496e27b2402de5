// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package yamlapi serves /watchkeeper/v1/yaml, which reads an object that was typed as YAML,
// and answers with it as JSON. docs/extensions.md and openapi.json describe it.
//
// The page needs it because YAML has dialects: to kubectl, 0400 is 256 and yes is true, to a
// parser of YAML 1.2 they are 400 and a string. Here the same libraries read it as in kubectl.
//
// It reads nothing of the cluster and changes nothing, so that a caller needs no rights. What
// a request can take in memory is bounded before it is allocated, see decode.go.
package yamlapi

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
)

// Path is the path of the API.
const Path = "/watchkeeper/v1/yaml"

// contentType is that of a request. A form of another page cannot send it.
const contentType = "application/yaml"

// maxBody bounds a request, which has to arrive within bodyTime: etcd stores no object that is
// larger. The texts of maxUploads requests are in memory, and others wait for up to wait, the
// users in turn.
const (
	maxBody    = 1536 << 10
	bodyTime   = 10 * time.Second
	maxUploads = 16
	maxOfUser  = 2
	maxWaiting = 8 // of a user
	wait       = 10 * time.Second
	busy       = "other YAML is being read: try again"
	retryAfter = 5 // seconds
)

// A Handler serves [Path]. It is safe for concurrent use.
type Handler struct {
	users          *fairness.Users
	uploads, slots *fairness.Queue
}

// New returns a handler. A text takes a hundred and fifty times its size in memory while it is
// read, and up to two seconds of a CPU: one is read at a time, the users in turn. users may be nil.
func New(users *fairness.Users) *Handler {
	return &Handler{
		users:   users,
		uploads: fairness.NewQueue(fairness.QueueOptions{Slots: maxUploads, PerKey: maxOfUser, MaxWaiting: maxWaiting, Wait: wait}),
		slots:   fairness.NewQueue(fairness.QueueOptions{Slots: 1, Wait: wait}),
	}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := h.convert(w, r)
	if err != nil {
		status.Fail(w, r, err, http.MethodPost)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	out := httpstream.NewDeadlineWriter(w, httpstream.HeldTimeout)
	defer out.Clear()
	out.Write(append(body, '\n')) //nolint:errcheck // the client is gone
}

func refuse(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &status.Error{Status: status.New(code, reason, fmt.Sprintf(format, args...))}
}

// convert returns the object in a request as JSON.
func (h *Handler) convert(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost || request.IsUpgrade(r) {
		return nil, &status.Error{Status: status.MethodNotAllowed()}
	}
	if _, err := request.Parameters(r, nil); err != nil {
		return nil, err
	}
	if sent, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); sent != contentType {
		return nil, refuse(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "the Content-Type is %q: it has to be %s", sent, contentType)
	}
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	upload, err := h.users.Slot(r.Context(), h.uploads, busy, retryAfter)
	if err != nil {
		return nil, err
	}
	defer upload.Release()
	text, err := httpstream.ReadBody(w, r, maxBody, bodyTime)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge()
	} else if err != nil {
		return nil, refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the YAML cannot be read: %v", err)
	}
	slot, err := h.users.Slot(r.Context(), h.slots, busy, retryAfter)
	if err != nil {
		return nil, err
	}
	defer slot.Release()
	body, err := decode(text)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
	}
	return body, nil
}

func tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "the YAML is too large: the limit is %d KiB", maxBody>>10)
}
