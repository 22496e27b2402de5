// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package multiwatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

const (
	// maxLine bounds the bytes of a line. An object has a few megabytes at most.
	maxLine = 64 << 20
	// maxAnswer bounds the bytes that are kept of an answer that is not a watch.
	maxAnswer = 64 << 10
)

var errNotWatch = errors.New("the answer is not a watch in JSON")

// A watchWriter is the ResponseWriter of one watch of a multiwatch. It adds the
// watch's number to each line.
type watchWriter struct {
	shared *sharedLines
	prefix string // {"watch":1,
	header http.Header
	code   int            // 0 until the header is written
	begun  []byte         // the beginning of a line, or an answer that is an error
	status *metav1.Status // the error that the watch ends with; nil for none
	over   bool           // the last line is written; guarded by shared.mu
}

// Header implements http.ResponseWriter.
func (w *watchWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *watchWriter) WriteHeader(code int) {
	if w.code != 0 || code < http.StatusOK {
		return
	}
	w.code = code
	media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if code == http.StatusOK && media != "application/json" {
		w.status = status.New(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			fmt.Sprintf("a multiwatch is JSON, and by its Accept header this watch is %q", media))
	}
}

// Write implements http.ResponseWriter.
func (w *watchWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.status != nil {
		return 0, errNotWatch
	}
	if w.code != http.StatusOK {
		w.begun = append(w.begun, p[:min(len(p), maxAnswer-len(w.begun))]...)
		return len(p), nil
	}
	n := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if !ended {
			break
		}
		if err := w.line(line); err != nil {
			return 0, err
		}
		p = rest
	}
	if len(w.begun)+len(p) > maxLine {
		w.begun, w.status = nil, w.broken("a line without an end")
		return 0, errNotWatch
	}
	w.begun = append(w.begun, p...)
	return n, nil
}

// line writes a line; begun has its first part.
func (w *watchWriter) line(line []byte) error {
	if len(w.begun) > 0 {
		line = append(w.begun, line...)
		w.begun = nil
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	members, ok := bytes.CutPrefix(line, []byte("{"))
	if !ok {
		w.status = w.broken(fmt.Sprintf("a line that begins with %q", line[:min(len(line), 40)]))
		return errNotWatch
	}
	return w.shared.line(w.prefix, string(members), "\n")
}

func (w *watchWriter) broken(how string) *metav1.Status {
	return status.New(http.StatusBadGateway, metav1.StatusReasonInternalError, "the answer to the watch is not one: it has "+how)
}

// SetWriteDeadline implements the interface of http.ResponseController, for a deadline
// that is over: the watch waits for a client that does not read, and so do all watches of
// the multiwatch. For other deadlines the lines have their own.
func (w *watchWriter) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		w.shared.abort()
	}
	return nil
}

// FlushError implements the interface of http.ResponseController.
func (w *watchWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return w.shared.flush()
}

// Flush implements http.Flusher.
func (w *watchWriter) Flush() { _ = w.FlushError() }

// end writes the last lines of the watch: the error, if there is one, and END.
func (w *watchWriter) end() {
	switch {
	case w.status != nil:
	case w.code == http.StatusOK && len(bytes.TrimSpace(w.begun)) > 0:
		w.status = w.broken("a line without an end")
	case w.code != http.StatusOK && w.code != 0:
		w.status = &metav1.Status{}
		if json.Unmarshal(w.begun, w.status) != nil || w.status.Kind != "Status" {
			w.status = status.New(int32(w.code), metav1.StatusReasonUnknown, string(w.begun))
		}
	}
	if w.status != nil {
		w.status.Kind, w.status.APIVersion = "Status", "v1"
		text, err := json.Marshal(w.status)
		if err != nil {
			panic(err) // a Status cannot fail
		}
		_ = w.shared.line(w.prefix, `"type":"ERROR","object":`, string(text), "}\n")
	}
	if w.last(`"type":"END"}`) == nil {
		_ = w.shared.flush()
	}
}

// last writes the last line.
func (w *watchWriter) last(members string) error {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	w.over = true
	return w.shared.lineLocked(w.prefix, members, "\n")
}

// notify writes a line of the gateway, unless the watch is over.
func (w *watchWriter) notify(members string) (sent bool, err error) {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	if w.over {
		return false, nil
	}
	return true, w.shared.lineLocked(w.prefix, members, "\n")
}
