// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package workbookapi serves /watchkeeper/v1/workbook, which converts a workbook of the
// page to .xlsx, and back. docs/extensions.md and openapi.json describe it.
//
// It reads nothing of the cluster, changes nothing and computes no formula, so that a
// caller needs no rights. The caller's file is all that it knows; as it takes many times
// its size in memory, a [Queue] bounds that.
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

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// Path is the path of the API.
const Path = "/watchkeeper/v1/workbook"

// maxBody bounds a request, which has to arrive within bodyTime.
const (
	maxBody  = sheet.MaxFile
	bodyTime = 30 * time.Second
)

// A Handler serves [Path].
type Handler struct{ *Queue }

// answer is a workbook, and what has to be known about it.
type answer struct {
	sheet.Workbook
	Problems []sheet.Problem `json:"problems"`
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	upload, err := h.accept(r)
	if err == nil {
		defer upload.Release() // when the client has read the answer
		var body []byte
		var contentType string
		if body, contentType, err = h.convert(w, r); err == nil {
			write(w, r, body, contentType)
		}
	}
	if err != nil {
		status.Fail(w, r, err, http.MethodPost)
	}
}

func write(w http.ResponseWriter, r *http.Request, body []byte, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if contentType == wire.XLSXType {
		w.Header().Set("Content-Disposition", `attachment; filename="workbook.xlsx"`)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	out := httpstream.NewDeadlineWriter(w, httpstream.HeldTimeout)
	defer out.Clear()
	out.Write(body) //nolint:errcheck // the client is gone
}

func refuse(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &status.Error{Status: status.New(code, reason, fmt.Sprintf(format, args...))}
}

// accept checks a request, and takes its place among those whose files are in memory.
func (h *Handler) accept(r *http.Request) (*fairness.Slot, error) {
	if r.Method != http.MethodPost || request.IsUpgrade(r) {
		return nil, &status.Error{Status: status.MethodNotAllowed()}
	}
	if _, err := request.Parameters(r, nil); err != nil {
		return nil, err
	}
	// Anything but these two types cannot be sent by a form of another page.
	if sent := mediaType(r); sent != "application/json" && sent != wire.XLSXType {
		return nil, refuse(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "the Content-Type is %q: it has to be application/json or %s", sent, wire.XLSXType)
	}
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	return h.users.Slot(r.Context(), h.uploads, busy, retryAfter)
}

func mediaType(r *http.Request) string {
	sent, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return sent
}

// convert returns the other form of the workbook in a request.
func (h *Handler) convert(w http.ResponseWriter, r *http.Request) (body []byte, contentType string, err error) {
	data, err := httpstream.ReadBody(w, r, maxBody, bodyTime)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, "", tooLarge()
	} else if err != nil {
		return nil, "", refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the workbook cannot be read: %v", err)
	}
	budget, release, err := h.Acquire(r.Context())
	if err != nil {
		return nil, "", err
	}
	defer release()
	if mediaType(r) == wire.XLSXType {
		body, err = toJSON(budget, data)
		contentType = "application/json"
	} else {
		body, err = toXLSX(budget, data)
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

func toJSON(b *sheet.Budget, data []byte) ([]byte, error) {
	book, problems, err := sheet.Read(b, data)
	if err != nil {
		return nil, err
	}
	if problems == nil {
		problems = []sheet.Problem{}
	}
	body, err := json.Marshal(answer{*book, problems})
	return append(body, '\n'), err
}

func toXLSX(b *sheet.Budget, data []byte) ([]byte, error) {
	if err := b.TakeWorkbook(data); err != nil {
		return nil, err
	}
	var book answer
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&book); err != nil {
		return nil, refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the workbook cannot be read: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "there is more after the workbook")
	}
	return book.XLSX(b)
}
