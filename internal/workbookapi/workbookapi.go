// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package workbookapi serves /watchkeeper/v1/workbook, which converts a workbook of the
// page to .xlsx, and back. docs/extensions.md and openapi.json describe it.
//
// It reads nothing of the cluster, changes nothing and computes no formula, so that a
// caller needs no rights. The caller's file is all that it knows; a file takes many times
// its size in memory, so that few are converted at a time.
package workbookapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/fairness"
	"github.com/watchkeeper/watchkeeper/internal/request"
	"github.com/watchkeeper/watchkeeper/internal/sheet"
	"github.com/watchkeeper/watchkeeper/internal/status"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// Path is the path of the API.
const Path = "/watchkeeper/v1/workbook"

// maxBody bounds a request.
const maxBody = sheet.MaxFile

// maxConversions is how many files are converted at a time; others wait for wait.
const (
	maxConversions = 2
	wait           = 10 * time.Second
	retryAfter     = 5 // seconds
)

// A Handler serves [Path].
type Handler struct{ queue *fairness.Queue }

// New returns a handler.
func New() *Handler {
	return &Handler{fairness.NewQueue(fairness.QueueOptions{Slots: maxConversions, Wait: wait})}
}

// answer is a workbook, and what has to be known about it.
type answer struct {
	sheet.Workbook
	Problems []sheet.Problem `json:"problems"`
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, contentType, err := h.convert(w, r)
	if err != nil {
		refusal, ok := errors.AsType[*status.Error](err)
		if !ok {
			refusal = &status.Error{Status: status.Internal(err.Error())}
		}
		if refusal.Code == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		status.Write(w, r, refusal.Status)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if contentType == wire.XLSXType {
		w.Header().Set("Content-Disposition", `attachment; filename="workbook.xlsx"`)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body) //nolint:errcheck // the client is gone
}

func refuse(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &status.Error{Status: status.New(code, reason, fmt.Sprintf(format, args...))}
}

// convert returns the other form of the workbook in a request.
func (h *Handler) convert(w http.ResponseWriter, r *http.Request) (body []byte, contentType string, err error) {
	if r.Method != http.MethodPost || request.IsUpgrade(r) {
		return nil, "", &status.Error{Status: status.MethodNotAllowed()}
	}
	if _, err := request.Parameters(r, nil); err != nil {
		return nil, "", err
	}
	// Anything but these two types cannot be sent by a form of another page.
	sent, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if sent != "application/json" && sent != wire.XLSXType {
		return nil, "", refuse(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "the Content-Type is %q: it has to be application/json or %s", sent, wire.XLSXType)
	}
	if r.ContentLength > maxBody {
		return nil, "", tooLarge()
	}
	user, _ := fairness.UserOf(r.Context())
	slot, err := h.queue.Acquire(r.Context(), user.Name)
	if err != nil {
		return nil, "", &status.Error{Status: status.TooMany("other workbooks are being converted: try again", retryAfter)}
	}
	defer slot.Release()
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, "", tooLarge()
	} else if err != nil {
		return nil, "", refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the workbook cannot be read: %v", err)
	}
	if sent == wire.XLSXType {
		body, err = toJSON(data)
		contentType = "application/json"
	} else {
		body, err = toXLSX(data)
		contentType = wire.XLSXType
	}
	if errors.Is(err, sheet.ErrInvalid) {
		err = refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "%v", err)
	}
	return body, contentType, err
}

func tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "the workbook is too large: the limit is %d MiB", maxBody>>20)
}

func toJSON(data []byte) ([]byte, error) {
	book, problems, err := sheet.Read(data)
	if err != nil {
		return nil, err
	}
	if problems == nil {
		problems = []sheet.Problem{}
	}
	body, err := json.Marshal(answer{*book, problems})
	return append(body, '\n'), err
}

func toXLSX(data []byte) ([]byte, error) {
	var book answer
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&book); err != nil {
		return nil, refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the workbook cannot be read: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "there is more after the workbook")
	}
	var out bytes.Buffer
	err := book.Write(&out)
	return out.Bytes(), err
}
