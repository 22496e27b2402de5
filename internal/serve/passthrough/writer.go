// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package passthrough

import (
	"bufio"
	"context"
	"net"
	"net/http"
)

// responseWriter keeps net/http from adding headers to a response, and from losing
// bytes that a client sent early on a connection that switches protocols.
type responseWriter struct {
	http.ResponseWriter
	ctx context.Context
}

// Unwrap serves http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *responseWriter) WriteHeader(code int) {
	switch code {
	case http.StatusContinue:
		return // net/http sent it when the body was first read
	case http.StatusEarlyHints:
		return // a browser follows them before it knows that the page is in a sandbox
	}
	if h := w.Header(); code >= 200 && h["Content-Type"] == nil {
		h["Content-Type"] = nil // present but empty: net/http guesses no type
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, brw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	// Once hijacked, the end of the request is only noticed by the copying goroutines,
	// and a peer that neither reads nor writes would block them.
	context.AfterFunc(w.ctx, func() { conn.Close() })
	if n := brw.Reader.Buffered(); n > 0 {
		early, _ := brw.Reader.Peek(n)
		conn = &earlyConn{Conn: conn, early: early}
	}
	return conn, brw, nil
}

// earlyConn first returns the bytes that were read before the connection was hijacked.
type earlyConn struct {
	net.Conn
	early []byte
}

func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite forwards a half-close; TCP and TLS connections both support it.
func (c *earlyConn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return c.Conn.Close()
}
