// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"net"
	"net/http"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

// ResponseWriter returns a writer for the handler that tells the event of the status code,
// and of the Status of a failure.
func (e *Event) ResponseWriter(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if e == nil {
		return w
	}
	return &responseWriter{ResponseWriter: w, event: e, upgrade: request.IsUpgrade(r)}
}

type responseWriter struct {
	http.ResponseWriter
	event   *Event
	upgrade bool
	code    int // 0 until the header is written
}

// Unwrap serves http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *responseWriter) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		w.begin(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	if w.code >= http.StatusBadRequest {
		w.event.failed(p)
	}
	return w.ResponseWriter.Write(p)
}

// Flush also sends the header, if it was not sent before.
func (w *responseWriter) Flush() {
	w.begin(http.StatusOK)
	http.NewResponseController(w.ResponseWriter).Flush() //nolint:errcheck // HTTP/1.0 cannot flush
}

// Hijack hands over the connection. The gateway does so for upgrades, and for watches.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, brw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.upgrade {
		w.begin(http.StatusSwitchingProtocols)
	} else if err == nil {
		w.begin(http.StatusOK)
	}
	return conn, brw, err
}

func (w *responseWriter) begin(code int) {
	if w.code != 0 {
		return
	}
	w.code = code
	if code >= http.StatusBadRequest && w.event.body {
		w.event.failing(w.Header())
	}
	w.event.ResponseStarted(code)
}

func (e *Event) failing(h http.Header) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure.begin(h)
}

func (e *Event) failed(p []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure.write(p)
}
