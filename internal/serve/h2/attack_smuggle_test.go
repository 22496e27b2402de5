// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// malformed are header lists that no handler may see (RFC 9113, sections 8.1 to 8.3, 8.5).
var malformed = map[string][]string{
	"no :method":               {":scheme", "http", ":path", "/", ":authority", "a"},
	"no :scheme":               {":method", "GET", ":path", "/", ":authority", "a"},
	"no :path":                 {":method", "GET", ":scheme", "http", ":authority", "a"},
	"empty :path":              {":method", "GET", ":scheme", "http", ":path", "", ":authority", "a"},
	"relative :path":           {":method", "GET", ":scheme", "http", ":path", "api", ":authority", "a"},
	":path of * for GET":       {":method", "GET", ":scheme", "http", ":path", "*", ":authority", "a"},
	":path with a space":       {":method", "GET", ":scheme", "http", ":path", "/a HTTP/1.1", ":authority", "a"},
	":path with CR LF":         {":method", "GET", ":scheme", "http", ":path", "/a\r\nx: y", ":authority", "a"},
	":path with NUL":           {":method", "GET", ":scheme", "http", ":path", "/a\x00", ":authority", "a"},
	"empty :method":            {":method", "", ":scheme", "http", ":path", "/", ":authority", "a"},
	":method with a space":     {":method", "GET /x", ":scheme", "http", ":path", "/", ":authority", "a"},
	":method with CR LF":       {":method", "GET\r\nx: y", ":scheme", "http", ":path", "/", ":authority", "a"},
	":scheme with CR LF":       {":method", "GET", ":scheme", "http\r\n", ":path", "/", ":authority", "a"},
	":authority with a user":   {":method", "GET", ":scheme", "http", ":path", "/", ":authority", "user@a"},
	":authority with CR LF":    {":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a\r\nx: y"},
	":authority with a space":  {":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a b"},
	":authority with a path":   {":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a/b"},
	"two :method":              {":method", "GET", ":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a"},
	"two :path":                {":method", "GET", ":path", "/", ":scheme", "http", ":path", "/x", ":authority", "a"},
	"two :authority":           {":method", "GET", ":authority", "b", ":scheme", "http", ":path", "/", ":authority", "a"},
	"two :scheme":              {":method", "GET", ":scheme", "https", ":scheme", "http", ":path", "/", ":authority", "a"},
	"unknown pseudo-header":    append([]string{":foo", "bar"}, request()...),
	":status":                  append([]string{":status", "200"}, request()...),
	":protocol without notice": append([]string{":protocol", "websocket"}, request()...),
	"pseudo-header at the end": append([]string{"x", "y"}, request()...),
	"CONNECT with a path":      {":method", "CONNECT", ":scheme", "http", ":path", "/", ":authority", "a"},
	"CONNECT to nowhere":       {":method", "CONNECT"},
	"upper case":               request("X-Upper", "1"),
	"upper case inside":        request("x-uppeR", "1"),
	"empty name":               request("", "1"),
	"name with a space":        request("x y", "1"),
	"name with a colon":        request("x:y", "1"),
	"name with CR LF":          request("x\r\ny", "1"),
	"name with NUL":            request("x\x00", "1"),
	"name with DEL":            request("x\x7f", "1"),
	"name not ASCII":           request("x\xe9", "1"),
	"value with CR":            request("x", "a\rb"),
	"value with LF":            request("x", "a\nb"),
	"value with NUL":           request("x", "a\x00b"),
	"value with space before":  request("x", " a"),
	"value with tab after":     request("x", "a\t"),
	"connection":               request("connection", "close"),
	"keep-alive":               request("keep-alive", "timeout=5"),
	"proxy-connection":         request("proxy-connection", "keep-alive"),
	"transfer-encoding":        request("transfer-encoding", "chunked"),
	"upgrade":                  request("upgrade", "h2c"),
	"te":                       request("te", "gzip"),
	"te with more":             request("te", "trailers, gzip"),
	"another host":             request("host", "other.test"),
	"two hosts":                {":method", "GET", ":scheme", "http", ":path", "/", "host", "a", "host", "b"},
	"content-length -1":        request("content-length", "-1"),
	"content-length +1":        request("content-length", "+1"),
	"content-length text":      request("content-length", "one"),
	"content-length too large": request("content-length", "99999999999999999999"),
	"content-length a list":    request("content-length", "0, 0"),
	"content-length twice":     request("content-length", "0", "content-length", "1"),
	"content-length, no DATA":  request("content-length", "5"),
}

// request returns a valid request with further fields.
func request(more ...string) []string { return h2test.Request("GET", "/", more...) }

// TestMalformed sends malformed requests. Each is a stream error of type PROTOCOL_ERROR
// (or the answer 400, which the RFC permits before it), that no handler sees, and the
// connection goes on.
func TestMalformed(t *testing.T) {
	for name, pairs := range malformed {
		bubble(t, name, func(t *testing.T) {
			var handlers gauge
			s := start(t, handlers.count(hello))
			c := h2test.New(t, s.Connect(t))
			id, err := c.Open(true, pairs...)
			if err != nil {
				t.Fatal(err)
			}
			a := c.Answer(id)
			if a.Status != "400" && (!a.Reset || a.Code != http2.ErrCodeProtocol) {
				t.Errorf("%v", a)
			}
			if seen, _ := handlers.total(); seen != 0 {
				t.Errorf("a handler has seen it")
			}
			if a := c.Exchange("/after"); a.Status != "200" {
				t.Errorf("afterwards: %v", a)
			}
		})
	}
}

// wellFormed are unusual requests that are valid, and what the handler sees.
var wellFormed = map[string]struct {
	pairs []string
	want  seen
}{
	"te: trailers":     {request("te", "trailers"), seen{Host: "watchkeeper.test", Path: "/", Fields: http.Header{"Te": {"trailers"}}}},
	"cookie crumbs":    {request("cookie", "a=b", "cookie", "c=d"), seen{Host: "watchkeeper.test", Path: "/", Fields: http.Header{"Cookie": {"a=b; c=d"}}}},
	"repeated field":   {request("x", "1", "x", "2"), seen{Host: "watchkeeper.test", Path: "/", Fields: http.Header{"X": {"1", "2"}}}},
	"only a host":      {[]string{":method", "GET", ":scheme", "http", ":path", "/", "host", "a:1"}, seen{Host: "a:1", Path: "/"}},
	"the same host":    {request("host", "watchkeeper.test"), seen{Host: "watchkeeper.test", Path: "/"}},
	"its other form":   {request("host", "Watchkeeper.test:80"), seen{Host: "watchkeeper.test", Path: "/"}},
	"empty value":      {request("x", ""), seen{Host: "watchkeeper.test", Path: "/", Fields: http.Header{"X": {""}}}},
	"tab and obs-text": {request("x", "a\tb\xff"), seen{Host: "watchkeeper.test", Path: "/", Fields: http.Header{"X": {"a\tb\xff"}}}},
	"query":            {h2test.Request("GET", "/a%2fb?c=d&e"), seen{Host: "watchkeeper.test", Path: "/a%2fb?c=d&e"}},
	"two slashes":      {h2test.Request("GET", "//a/b"), seen{Host: "watchkeeper.test", Path: "//a/b"}},
	"OPTIONS *":        {h2test.Request("OPTIONS", "*"), seen{Host: "watchkeeper.test", Path: "*"}},
	"length of 0":      {request("content-length", "0"), seen{Host: "watchkeeper.test", Path: "/", Fields: http.Header{"Content-Length": {"0"}}}},
}

// seen is a request as a handler sees it.
type seen struct {
	Host, Path string
	Fields     http.Header
}

// TestWellFormed sends unusual valid requests, which a too strict server would refuse.
func TestWellFormed(t *testing.T) {
	for name, one := range wellFormed {
		bubble(t, name, func(t *testing.T) {
			var got *seen
			s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = &seen{Host: r.Host, Path: r.RequestURI, Fields: r.Header}
			}))
			// net/http answers OPTIONS * itself otherwise.
			s.HTTP.DisableGeneralOptionsHandler = true
			c := h2test.New(t, s.Connect(t))
			id, err := c.Open(true, one.pairs...)
			if err != nil {
				t.Fatal(err)
			}
			if a := c.Answer(id); a.Status != "200" || got == nil {
				t.Fatalf("%v", a)
			}
			delete(got.Fields, "Host")
			want, _ := json.Marshal(one.want)
			text, _ := json.Marshal(got)
			if string(want) != strings.Replace(string(text), `"Fields":{}`, `"Fields":null`, 1) {
				t.Errorf("got %s, want %s", text, want)
			}
		})
	}
}

// TestContentLength sends bodies that are longer or shorter than Content-Length says. The
// handler, which may already run, must not take them for complete: reading fails, and the
// stream ends with PROTOCOL_ERROR. Trailers that are malformed are the same.
func TestContentLength(t *testing.T) {
	for name, one := range map[string]struct {
		send  func(*h2test.Conn, uint32) error
		valid bool
	}{
		"exact": {func(c *h2test.Conn, id uint32) error { return c.Data(id, true, []byte("12345")) }, true},
		"exact, then empty": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("12345")), c.Data(id, true, nil))
		}, true},
		"exact, padded": {func(c *h2test.Conn, id uint32) error {
			return c.Frames(func(f *http2.Framer) { _ = f.WriteDataPadded(id, true, []byte("12345"), make([]byte, 20)) })
		}, true},
		"exact, trailers": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("12345")), c.HeadersOn(id, true, "x-trailer", "1"))
		}, true},
		"short": {func(c *h2test.Conn, id uint32) error { return c.Data(id, true, []byte("1234")) }, false},
		"short, trailers": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("1234")), c.HeadersOn(id, true, "x-trailer", "1"))
		}, false},
		"long":         {func(c *h2test.Conn, id uint32) error { return c.Data(id, true, []byte("123456")) }, false},
		"long, no end": {func(c *h2test.Conn, id uint32) error { return c.Data(id, false, []byte("123456")) }, false},
		"long, in two": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("12345")), c.Data(id, true, []byte("6")))
		}, false},
		"pseudo trailers": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("12345")), c.HeadersOn(id, true, ":path", "/x"))
		}, false},
		"upper trailers": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("12345")), c.HeadersOn(id, true, "X-Trailer", "1"))
		}, false},
		"CR LF in trailers": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("12345")), c.HeadersOn(id, true, "x", "1\r\n2"))
		}, false},
		"trailers, no end": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("12345")), c.HeadersOn(id, false, "x-trailer", "1"))
		}, false},
		"the client resets": {func(c *h2test.Conn, id uint32) error {
			return both(c.Data(id, false, []byte("12345")), c.Reset(id, http2.ErrCodeCancel))
		}, false},
		"the client is gone": {func(c *h2test.Conn, id uint32) error {
			err := c.Data(id, false, []byte("12345"))
			c.Close()
			return err
		}, false},
	} {
		bubble(t, name, func(t *testing.T) {
			ended := make(chan error, 1)
			s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == "GET" {
					return
				}
				body, err := io.ReadAll(r.Body)
				if err == nil && string(body) != "12345" {
					t.Errorf("the body is %q, complete", body)
				}
				ended <- err
			}))
			c := h2test.New(t, s.Connect(t))
			id, err := c.Open(false, h2test.Request("POST", "/", "content-length", "5")...)
			if err == nil {
				synctest.Wait() // the handler runs
				err = one.send(c, id)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := <-ended; (err == nil) != one.valid {
				t.Errorf("the handler's body: %v", err)
			}
			if name == "the client is gone" || name == "the client resets" {
				return
			}
			a := c.Answer(id)
			if one.valid && (a.Status != "200" || !a.Ended) || !one.valid && (!a.Reset || a.Code != http2.ErrCodeProtocol) {
				t.Errorf("%v", a)
			}
			if a := c.Exchange("/after"); a.Status != "200" {
				t.Errorf("afterwards: %v", a)
			}
		})
	}
}

func both(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// TestSmuggledPath sends paths that a server might normalize or split. What the handler
// sees parses to what was sent.
func TestSmuggledPath(t *testing.T) {
	bubble(t, "one connection", func(t *testing.T) {
		var got string
		s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI + " " + r.URL.EscapedPath() }))
		c := h2test.New(t, s.Connect(t))
		for _, path := range []string{"/a/../b", "/a%2e%2e/b", "/a#b", "/a%00", "/a%0d%0ab", "/a\\b", "/%", "http://other.test/x", "/é"} {
			got = ""
			id, err := c.Open(true, h2test.Request("GET", path)...)
			if err != nil {
				t.Fatal(err)
			}
			a := c.Answer(id)
			if a.Reset || a.Status != "200" {
				if got != "" {
					t.Errorf("%s: a handler has seen the refused %s", path, got)
				}
				continue
			}
			u, err := url.ParseRequestURI(path)
			if err != nil || got != path+" "+u.EscapedPath() || !strings.HasPrefix(path, "/") {
				t.Errorf("%s: the handler has seen %s (%v)", path, got, err)
			}
		}
	})
}
