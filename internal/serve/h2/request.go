// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
)

// open opens a stream and starts its handler.
func (c *conn) open(id uint32, ended bool, block *headerBlock) error {
	var r *http.Request
	err := block.invalid
	if err == nil && !block.tooLarge {
		r, err = c.request(block, ended)
	}
	c.mu.Lock()
	if c.drained == finalGoAway {
		c.mu.Unlock()
		return nil // it crossed with the GOAWAY
	}
	c.maxID = id
	// A handler counts until it returns, even if its stream was reset (CVE-2023-44487), and
	// a feed until it knows that its stream has ended.
	full := len(c.streams)+c.orphans+c.ended >= int(c.server.maxStreams) || c.orphans >= maxOrphans ||
		c.held > heldHeaders*c.server.maxHeaderBytes+heldPerStream*int(c.server.maxStreams)
	unsent := len(c.control) > maxUnsentHeaders
	c.mu.Unlock()
	switch {
	case err != nil:
		return malformed(id, err)
	case unsent:
		return connectionError{http2.ErrCodeEnhanceYourCalm, "the client does not read the answers to its requests"}
	case full:
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream, Cause: errors.New("too many streams")}
	}
	st := &Stream{c: c, id: id, out: c.newOutgoing()}
	if ended {
		st.state = halfClosedRemote
	}
	handler := c.handler
	if block.tooLarge {
		// The method is not known for sure.
		r, handler = &http.Request{Method: http.MethodGet, Header: http.Header{}, Body: http.NoBody}, http.HandlerFunc(headerTooLarge)
		r.URL = &url.URL{Path: "/"}
		if !ended {
			r.ContentLength = -1
		}
	}
	ctx, cancel := context.WithCancel(c.base)
	st.cancelFunc = cancel
	r = r.WithContext(ctx)
	res := &response{st: st, request: r, header: http.Header{}}
	if !ended {
		in := &incoming{window: streamWindow, declared: r.ContentLength}
		in.changed.L = &c.mu
		st.in = in
		r.Body = &requestBody{st: st, in: in, request: r, expects: expectsContinue(r)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed || c.over {
		cancel()
		return nil
	}
	st.window.Store(c.initial)
	c.streams[id] = st
	st.handler = running
	size := c.server.maxHeaderBytes - max(block.left, 0)
	c.held += size
	go c.handle(res, handler, cancel, size)
	return nil
}

// handle runs a handler and ends its response. size is that of the request's header.
func (c *conn) handle(res *response, handler http.Handler, cancel context.CancelFunc, size int) {
	st := res.st
	ok := false
	defer func() {
		cause := recover()
		if cause != nil && cause != http.ErrAbortHandler { //nolint:errorlint // as in net/http
			c.server.logf("http2: panic serving %s: %v\n%s", c.remote, cause, stack())
		}
		cancel()
		c.mu.Lock()
		if in := st.in; in != nil {
			if in.deadline != nil {
				in.deadline.Stop()
			}
			in.unwanted = true
			c.dropBodyLocked(in)
		}
		if !ok {
			c.resetLocked(st, http2.ErrCodeInternal)
		} else if st.state == halfClosedLocal { // the client still sends the request
			c.endLocked(st)
		}
		c.mu.Unlock()
		if ok && !res.taken {
			res.finish()
		}
		c.mu.Lock()
		if st.handler == orphaned {
			c.orphans--
		}
		st.in, st.cancelFunc, st.handler = nil, nil, returned
		c.held -= size
		c.mu.Unlock()
	}()
	handler.ServeHTTP(res, res.request)
	ok = true
}

func headerTooLarge(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the header of the request is too large", http.StatusRequestHeaderFieldsTooLarge)
}

// request makes a request from its header. The error says why it is malformed.
func (c *conn) request(b *headerBlock, ended bool) (*http.Request, error) {
	hosts := b.header["Host"]
	delete(b.header, "Host")
	switch {
	case b.method == http.MethodConnect:
		if b.authority == "" || b.pseudo[":path"] || b.pseudo[":scheme"] {
			return nil, errors.New("CONNECT has an authority, and no path or scheme")
		}
	case !httpguts.ValidHeaderFieldName(b.method): // a token
		return nil, errors.New("no valid :method")
	case b.scheme != "http" && b.scheme != "https":
		return nil, errors.New(":scheme is neither http nor https")
	case !validPath(b.path) && !(b.path == "*" && b.method == http.MethodOptions):
		return nil, errors.New("no valid :path")
	case len(hosts) > 1 || len(hosts) == 1 && b.pseudo[":authority"] && !sameHost(hosts[0], b.authority, b.scheme):
		return nil, errors.New("the Host header differs from :authority")
	}
	host := b.authority
	if host == "" && len(hosts) == 1 {
		host = hosts[0]
	}
	if !httpguts.ValidHostHeader(host) || strings.Contains(host, "@") {
		return nil, errors.New("the authority is not valid")
	}
	length, err := contentLength(b.header["Content-Length"], ended)
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: b.method, Proto: "HTTP/2.0", ProtoMajor: 2, Header: b.header, Host: host, ContentLength: length,
		RemoteAddr: c.remote, RequestURI: b.path, TLS: c.tls, Body: http.NoBody,
	}
	if b.method == http.MethodConnect {
		r.URL, r.RequestURI = &url.URL{Host: host}, host
	} else if r.URL, err = url.ParseRequestURI(b.path); err != nil {
		return nil, err
	}
	for _, list := range b.header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(textproto.TrimString(name)); httpguts.ValidTrailerHeader(name) {
				if r.Trailer == nil {
					r.Trailer = http.Header{}
				}
				r.Trailer[name] = nil
			}
		}
	}
	delete(b.header, "Trailer")
	return r, nil
}

// sameHost reports whether two authorities are the same one (RFC 9113, 8.3.1).
func sameHost(a, b, scheme string) bool {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return strings.EqualFold(strings.TrimSuffix(a, port), strings.TrimSuffix(b, port))
}

// validPath reports whether a path, with its query, could stand in a request line. What
// comes after a space there would be something else (request smuggling).
func validPath(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

func contentLength(values []string, ended bool) (int64, error) {
	if len(values) == 0 {
		if ended {
			return 0, nil
		}
		return -1, nil
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	switch {
	case err != nil || len(values) > 1:
		return 0, fmt.Errorf("Content-Length %q", values) //nolint:staticcheck // a header's name
	case ended && n != 0:
		return 0, errors.New("a Content-Length without a body")
	}
	return int64(n), nil
}

func expectsContinue(r *http.Request) bool {
	expects := httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue")
	if expects {
		delete(r.Header, "Expect")
	}
	return expects
}

// An incoming is the body of a request. It is guarded by conn.mu.
type incoming struct {
	data     []byte // received and not yet read
	err      error  // after data; nil while there may be more
	changed  sync.Cond
	trailer  http.Header
	window   int   // what the client may send
	returned int   // of it, what was read and not yet given back
	declared int64 // Content-Length; -1 for none
	received int64
	unwanted bool // the handler does not read any more
	deadline *time.Timer
}

// end ends the body. Only the first call has an effect.
func (in *incoming) end(why error) {
	if in.err == nil {
		in.err = why
		in.changed.Broadcast()
	}
}

// setReadDeadline implements http.ResponseController's.
func (st *Stream) setReadDeadline(t time.Time) {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	in := st.in
	if in == nil {
		return
	}
	if in.deadline != nil {
		in.deadline.Stop()
		in.deadline = nil
	}
	if !t.IsZero() {
		in.deadline = time.AfterFunc(time.Until(t), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			in.end(os.ErrDeadlineExceeded)
		})
	}
}

// dropBodyLocked gives back the window of what is not read.
func (c *conn) dropBodyLocked(in *incoming) {
	if n := len(in.data); n > 0 {
		in.data = nil
		c.returnLocked(n)
	}
}

// A requestBody reads the body of a request.
type requestBody struct {
	st      *Stream
	in      *incoming
	request *http.Request
	expects bool // a response of 100 is due
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	c, in := b.st.c, b.in
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.expects {
		b.expects = false
		if b.st.headerIn == 0 && b.st.state != closed {
			c.controlLocked(c.encodeLocked(b.st.id, http.StatusContinue, nil, false))
		}
	}
	for len(in.data) == 0 && in.err == nil && !in.unwanted {
		in.changed.Wait()
	}
	switch {
	case in.unwanted:
		return 0, http.ErrBodyReadAfterClose
	case len(in.data) == 0:
		if in.err == io.EOF {
			for name := range b.request.Trailer {
				b.request.Trailer[name] = in.trailer[name]
			}
		}
		return 0, in.err
	case len(p) == 0:
		return 0, nil
	}
	n := copy(p, in.data)
	if in.data = in.data[n:]; len(in.data) == 0 {
		in.data = nil
	}
	c.returnLocked(n)
	c.giveLocked(b.st, n)
	return n, nil
}

// Close implements io.Closer.
func (b *requestBody) Close() error {
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	b.in.unwanted = true
	b.in.changed.Broadcast()
	c.dropBodyLocked(b.in)
	return nil
}
