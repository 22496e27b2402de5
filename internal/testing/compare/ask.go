// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

// An Endpoint serves the Kubernetes API.
type Endpoint struct {
	// URL is its address, without a slash at the end.
	URL string
	// Client speaks HTTP/1.1 with the endpoint's credentials and must not
	// decompress: framing and Content-Encoding are compared.
	Client *http.Client
	// HTTP2 is the same over HTTP/2.
	HTTP2 *http.Client
	// Plain is Client without credentials.
	Plain *http.Client
	// Dial opens a connection for a WebSocket, with Client's credentials;
	// DialPlain one without.
	Dial, DialPlain func(context.Context) (net.Conn, error)
}

// As selects the client of an endpoint that sends a request.
type As int

// The clients of an endpoint.
const (
	AsItself As = iota
	AsNobody    // Plain
	AsHTTP2
)

// A Request is sent to both endpoints. Only Path is required.
type Request struct {
	Method string // "" is GET
	Path   string // with the query
	Accept string // "" sends none
	Header http.Header
	Body   string
	As     As
}

func (r Request) String() string {
	s := r.Method
	if s == "" {
		s = http.MethodGet
	}
	s += " " + r.Path
	if r.Accept != "" {
		s += " (Accept: " + r.Accept + ")"
	}
	for name, v := range r.Header {
		if name != "Authorization" {
			s += " (" + name + ": " + strings.Join(v, ", ") + ")"
		}
	}
	return s
}

// An Answer is a complete response.
type Answer struct {
	Code    int
	Header  http.Header
	Body    []byte
	Proto   string // such as HTTP/1.1
	Chunked bool
	// End is why the body ended; nil means a clean end.
	End error
}

// Text returns the body as text.
func (a *Answer) Text() string { return string(a.Body) }

// FromUpstream reports whether the answer came from the API server. The API
// server adds an Audit-Id to each answer; a gateway passes it on and adds none
// of its own.
func (a *Answer) FromUpstream() bool { return a.Header.Get("Audit-Id") != "" }

// Do sends a request and reads the answer to its end.
func (e *Endpoint) Do(ctx context.Context, r Request) (*Answer, error) {
	resp, err := e.Send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := head(resp)
	a.Body, a.End = io.ReadAll(resp.Body)
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), errors.New(r.String()))
	}
	return a, nil
}

func head(resp *http.Response) *Answer {
	return &Answer{
		Code: resp.StatusCode, Header: resp.Header, Proto: resp.Proto,
		Chunked: len(resp.TransferEncoding) == 1 && resp.TransferEncoding[0] == "chunked",
	}
}

// Send sends a request. The caller closes the body.
func (e *Endpoint) Send(ctx context.Context, r Request) (*http.Response, error) {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, e.URL+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	for name, v := range r.Header {
		req.Header[name] = v
	}
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	if r.Body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := e.Client
	switch r.As {
	case AsNobody:
		client = e.Plain
	case AsHTTP2:
		client = e.HTTP2
	}
	// Redirects are compared, too.
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c.Do(req)
}
