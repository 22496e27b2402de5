// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A response is the ResponseWriter of a handler. Like net/http's it is for one goroutine,
// except for deadlines.
type response struct {
	st      *Stream
	request *http.Request
	header  http.Header

	code    int         // 0 before WriteHeader
	fixed   http.Header // the header as of WriteHeader; nil before, and after it was sent
	sent    bool        // the header has been sent
	ended   bool        // the handler has returned
	taken   bool        // by TakeOver
	length  int64       // the Content-Length of the header; -1 for none
	written int64
	buf     *[bufferSize]byte // what is not sent yet; nil until it is needed
	n       int               // bytes in it
}

var errHandled = errors.New("http2: the handler has returned")

// bufferSize is net/http's. A response that fits is sent with its header at once.
const bufferSize = 4 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	switch {
	case code < 100 || code > 999:
		panic(fmt.Sprintf("http2: invalid status %d", code))
	case w.code != 0 || w.taken:
		return
	case code < 200 && code != http.StatusSwitchingProtocols: // HTTP/2 cannot switch
		h := w.header.Clone()
		dropConnection(h)
		delete(h, "Content-Length") // it has no body (RFC 9110, 8.6)
		w.st.c.sendHeader(w.st, code, h, false)
		return
	}
	w.code, w.fixed, w.length = code, w.header.Clone(), -1
	if values := w.fixed["Content-Length"]; len(values) > 0 {
		if n, err := strconv.ParseUint(values[0], 10, 63); err == nil {
			w.length = int64(n)
		} else {
			delete(w.fixed, "Content-Length")
		}
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.taken:
		return 0, http.ErrHijacked
	case w.ended:
		return 0, errHandled
	case !hasBody(w.code):
		return 0, http.ErrBodyNotAllowed
	case w.length >= 0 && w.written+int64(len(p)) > w.length:
		return 0, http.ErrContentLength
	}
	w.written += int64(len(p))
	if w.n+len(p) <= bufferSize {
		if w.buf == nil {
			w.buf = buffers.Get().(*[bufferSize]byte)
		}
		w.n += copy(w.buf[w.n:], p)
		return len(p), nil
	}
	if err := w.flushBuffer(); err != nil {
		return 0, err
	}
	return w.send(p)
}

// WriteString implements io.StringWriter.
func (w *response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// hasBody reports whether an answer may have a body (RFC 9110, 6.4.1).
func hasBody(code int) bool {
	return code >= 200 && code != http.StatusNoContent && code != http.StatusNotModified
}

// send sends a part of the body, after the header.
func (w *response) send(p []byte) (int, error) {
	w.sendHeader(p, false)
	if w.request.Method == http.MethodHead {
		w.st.c.wakeWriter()
		return len(p), nil
	}
	return w.st.Write(p)
}

func (w *response) flushBuffer() error {
	if w.n == 0 {
		return nil
	}
	n := w.n
	w.n = 0
	_, err := w.send(w.buf[:n])
	return err
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends the header and what is buffered.
func (w *response) FlushError() error {
	if w.taken {
		return http.ErrHijacked
	}
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.n > 0 {
		return w.flushBuffer()
	}
	w.sendHeader(nil, false)
	c := w.st.c
	c.wakeWriter()
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.state == closed {
		return w.st.err
	}
	return nil
}

// sendHeader sends the header of the response unless that has been done. first is the
// beginning of the body.
func (w *response) sendHeader(first []byte, end bool) {
	if w.sent {
		return
	}
	w.sent = true
	h := w.fixed
	w.fixed = nil
	if len(first) > 0 && len(h["Content-Type"]) == 0 && len(h["Content-Encoding"]) == 0 {
		if _, none := h["Content-Type"]; !none {
			h.Set("Content-Type", http.DetectContentType(first))
		}
	}
	if w.ended && w.length < 0 && hasBody(w.code) && (w.request.Method != http.MethodHead || len(first) > 0) && !declaresTrailers(h) {
		h.Set("Content-Length", strconv.Itoa(len(first)))
	}
	if _, ok := h["Date"]; !ok {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	closes := httpguts.HeaderValuesContainsToken(h["Connection"], "close")
	dropConnection(h)
	c := w.st.c
	c.sendHeader(w.st, w.code, h, end)
	if closes {
		c.drain()
	}
}

// dropConnection removes the fields that HTTP/2 does not have.
func dropConnection(h http.Header) {
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade"} {
		delete(h, name)
	}
}

func declaresTrailers(h http.Header) bool { return len(h["Trailer"]) > 0 }

// finish ends the response after the handler has returned.
func (w *response) finish() {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.ended = true
	var rest []byte
	if buf := w.buf; buf != nil {
		defer buffers.Put(buf)
		rest = buf[:w.n]
		w.buf, w.n = nil, 0
	}
	trailer := w.trailer()
	bodiless := len(rest) == 0 || w.request.Method == http.MethodHead
	if !w.sent {
		w.sendHeader(rest, bodiless && trailer == nil)
		if bodiless && trailer == nil {
			return
		}
	}
	switch {
	case trailer == nil && bodiless:
		_, _ = w.st.send(nil, true)
	case trailer == nil:
		_, _ = w.st.send(rest, true)
	default:
		if !bodiless {
			if _, err := w.st.Write(rest); err != nil {
				return
			}
		}
		w.st.c.sendHeader(w.st, 0, trailer, true)
	}
}

// trailer returns the trailers, nil for none: the header fields that were declared
// (Trailer), and those with the prefix http.TrailerPrefix.
func (w *response) trailer() http.Header {
	var all http.Header
	add := func(name string, values []string) {
		if len(values) > 0 && httpguts.ValidTrailerHeader(name) {
			if all == nil {
				all = http.Header{}
			}
			all[name] = values
		}
	}
	for _, list := range w.header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			add(name, w.header[name])
		}
	}
	for name, values := range w.header {
		if rest, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			add(http.CanonicalHeaderKey(rest), values)
		}
	}
	return all
}

// takeOver implements TakeOver.
func (w *response) takeOver() *Stream {
	if w.taken || w.request.Method == http.MethodHead {
		return nil
	}
	w.Flush() // if the client is gone, the caller will find that out
	w.taken = true
	if w.buf != nil {
		buffers.Put(w.buf)
		w.buf = nil
	}
	return w.st
}

// SetWriteDeadline is for http.ResponseController. At the deadline the stream is reset.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.st.setWriteDeadline(t)
	return nil
}

// SetReadDeadline is for http.ResponseController.
func (w *response) SetReadDeadline(t time.Time) error {
	w.st.setReadDeadline(t)
	return nil
}

// EnableFullDuplex is for http.ResponseController: HTTP/2 always is.
func (*response) EnableFullDuplex() error { return nil }

// sendHeader sends a header, or trailers if the code is 0.
func (c *conn) sendHeader(st *Stream, code int, h http.Header, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.state == closed {
		return
	}
	if code >= 200 {
		st.headerIn = c.batch + 1
	}
	frames := c.encodeLocked(st.id, code, h, end)
	if !c.failed {
		c.control = append(c.control, frames...)
	}
	if end || code < 200 {
		c.wakeWriter() // otherwise the body does, or Flush
	}
	if end {
		c.endLocked(st)
	}
}

// encodeLocked encodes a header in one or more frames, which have to be sent in this
// order.
func (c *conn) encodeLocked(id uint32, code int, h http.Header, end bool) []byte {
	c.encoded.Reset()
	if code != 0 {
		c.field(":status", strconv.Itoa(code))
	}
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !httpguts.ValidHeaderFieldName(name) || strings.HasPrefix(name, http.TrailerPrefix) {
			continue
		}
		for _, value := range h[name] {
			if httpguts.ValidHeaderFieldValue(value) {
				c.field(strings.ToLower(name), value)
			}
		}
	}
	typ, flags := http2.FrameHeaders, http2.Flags(0)
	if end {
		flags = http2.FlagHeadersEndStream
	}
	var frames []byte
	for {
		fragment := c.encoded.Next(maxFrameSize)
		if c.encoded.Len() == 0 {
			flags |= http2.FlagHeadersEndHeaders // also CONTINUATION's
		}
		frames = append(appendHeader(frames, len(fragment), typ, flags, id), fragment...)
		if c.encoded.Len() == 0 {
			return frames
		}
		typ, flags = http2.FrameContinuation, 0
	}
}

func (c *conn) field(name, value string) {
	_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) // to memory
}

func stack() []byte {
	b := make([]byte, 64<<10)
	return bytes.TrimSpace(b[:runtime.Stack(b, false)])
}
