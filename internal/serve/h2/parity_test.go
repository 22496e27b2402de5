// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// A report is what a handler, and a client of net/http, see of an exchange, as lines.
type report struct {
	mu    sync.Mutex // guards the field below
	lines []string
}

func (r *report) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// exchanges are what TestParity compares: handlers, which report what they see, and the
// request, by default a GET.
var exchanges = map[string]struct {
	request func() *http.Request
	handler func(*report, http.ResponseWriter, *http.Request)
}{
	"a text":        {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>text") }},
	"nothing":       {nil, func(*report, http.ResponseWriter, *http.Request) {}},
	"only a status": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }},
	"204": {nil, func(r *report, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(204)
		_, err := w.Write([]byte("x"))
		r.add("write: %v", err)
	}},
	"304 with a length": {nil, func(r *report, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		w.WriteHeader(304)
		_, err := w.Write([]byte("x"))
		r.add("write: %v", err)
	}},
	"two statuses": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(202) }},
	"a long body": {nil, func(r *report, w http.ResponseWriter, _ *http.Request) {
		n, err := w.Write(pattern(300_000))
		r.add("write: %d, %v", n, err)
	}},
	"flushed parts": {nil, func(r *report, w http.ResponseWriter, _ *http.Request) {
		for i := range 5 {
			fmt.Fprintf(w, "part %d", i)
			r.add("flush: %v", http.NewResponseController(w).Flush())
		}
	}},
	"flush without a body": {nil, func(r *report, w http.ResponseWriter, _ *http.Request) {
		r.add("flush: %v", http.NewResponseController(w).Flush())
	}},
	"HEAD": {ask("HEAD", ""), func(r *report, w http.ResponseWriter, _ *http.Request) {
		n, err := w.Write([]byte("some text"))
		r.add("write: %d, %v", n, err)
	}},
	"HEAD of a long body": {ask("HEAD", ""), func(r *report, w http.ResponseWriter, _ *http.Request) {
		n, err := w.Write(pattern(100_000))
		r.add("write: %d, %v", n, err)
	}},
	"HEAD with a length": {ask("HEAD", ""), func(_ *report, w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "7") }},
	"less than the length": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("less"))
	}},
	"a length that is none": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "ten")
		_, _ = w.Write([]byte("text"))
	}},
	"no type": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = w.Write([]byte("<html>"))
	}},
	"encoded": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "zstd")
		_, _ = w.Write([]byte("<html>"))
	}},
	"declared trailers": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Trailer", "X-One, X-Two")
		w.Header().Add("Trailer", "X-Three")
		_, _ = w.Write([]byte("text"))
		w.Header().Set("X-One", "1")
		w.Header().Set("X-Three", "3")
		w.Header().Set("X-Four", "not declared")
	}},
	"trailers with the prefix": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("text"))
		w.Header().Set(http.TrailerPrefix+"X-Five", "5")
	}},
	"trailers without a body": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-One")
		w.WriteHeader(200)
		w.Header().Set("X-One", "1")
	}},
	"early hints": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(103)
		w.Header().Set("Link", "</b>")
		w.WriteHeader(103)
		_, _ = w.Write([]byte("text"))
	}},
	"header changed later": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-A", "before")
		w.WriteHeader(200)
		w.Header().Set("X-A", "after")
		w.Header().Set("X-B", "after")
	}},
	"invalid header fields": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Lines"] = []string{"a\r\nX-Smuggled: 1", "good"}
		w.Header()["X Space"] = []string{"1"}
		w.Header()["Connection"] = []string{"keep-alive"}
		w.Header()["Transfer-Encoding"] = []string{"chunked"}
		w.Header()["x-lower"] = []string{"1"}
		w.Header()["X-Many"] = []string{"1", "", "3"}
		w.Header()["Date"] = []string{"yesterday"}
	}},
	"cookies": {func() *http.Request {
		r := ask("GET", "")()
		r.AddCookie(&http.Cookie{Name: "a", Value: "1"})
		r.AddCookie(&http.Cookie{Name: "b", Value: "2"})
		return r
	}, func(r *report, w http.ResponseWriter, req *http.Request) {
		r.add("cookies: %v", req.Cookies())
		http.SetCookie(w, &http.Cookie{Name: "c", Value: "3"})
		http.SetCookie(w, &http.Cookie{Name: "d", Value: "4"})
	}},
	"the request": {func() *http.Request {
		r := ask("PATCH", "a body")()
		r.Header.Set("Te", "trailers")
		r.Header["X-Many"] = []string{"1", "2"}
		r.Host = "other.test:81"
		return r
	}, func(r *report, _ http.ResponseWriter, req *http.Request) { r.request(req) }},
	"a request without a body": {nil, func(r *report, _ http.ResponseWriter, req *http.Request) { r.request(req) }},
	"a body of unknown length": {unknownLength, func(r *report, _ http.ResponseWriter, req *http.Request) { r.request(req) }},
	"a form": {form, func(r *report, _ http.ResponseWriter, req *http.Request) {
		r.add("%v %v", req.ParseForm(), req.PostForm)
	}},
	"the context":               {nil, func(r *report, _ http.ResponseWriter, req *http.Request) { r.context(req) }},
	"an echo":                   {ask("POST", strings.Repeat("echo ", 50_000)), func(_ *report, w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) }},
	"a body that nobody reads":  {ask("POST", strings.Repeat("x", 500_000)), func(_ *report, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("done")) }},
	"reading after the handler": {ask("POST", "text"), func(r *report, _ http.ResponseWriter, req *http.Request) { r.closed(req) }},
	"Expect: 100-continue": {func() *http.Request {
		r := ask("POST", "a body")()
		r.Header.Set("Expect", "100-continue")
		return r
	}, func(r *report, _ http.ResponseWriter, req *http.Request) { r.request(req) }},
	"Expect: 100-continue, refused": {func() *http.Request {
		r := ask("POST", "a body")()
		r.Header.Set("Expect", "100-continue")
		return r
	}, func(_ *report, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }},
	"request trailers": {func() *http.Request {
		r := unknownLength()
		r.Trailer = http.Header{"X-Late": {"1"}, "X-Later": {"2"}}
		return r
	}, func(r *report, _ http.ResponseWriter, req *http.Request) {
		r.add("before: %v", req.Trailer)
		_, _ = io.Copy(io.Discard, req.Body)
		r.add("after: %v", req.Trailer)
	}},
	"panic": {nil, func(*report, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	"panic after a part": {nil, func(_ *report, w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(pattern(10_000))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}},
	"a write deadline": {nil, func(r *report, w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		r.add("set: %v", c.SetWriteDeadline(time.Now().Add(time.Second)))
		time.Sleep(2 * time.Second)
		_, err := w.Write(pattern(100_000))
		r.add("write fails: %v", err != nil)
	}},
	"a read deadline": {stalled, func(r *report, w http.ResponseWriter, req *http.Request) {
		c := http.NewResponseController(w)
		r.add("set: %v", c.SetReadDeadline(time.Now().Add(time.Second)))
		_, err := io.Copy(io.Discard, req.Body)
		r.add("read: deadline: %v", errors.Is(err, os.ErrDeadlineExceeded))
		w.Header().Set("Date", "now") // net/http's is from before
		_, _ = w.Write([]byte("late"))
	}},
	"full duplex": {nil, func(r *report, w http.ResponseWriter, _ *http.Request) {
		r.add("%v", http.NewResponseController(w).EnableFullDuplex())
	}},
	"hijack": {nil, func(r *report, w http.ResponseWriter, _ *http.Request) {
		_, _, err := http.NewResponseController(w).Hijack()
		r.add("%v", errors.Is(err, http.ErrNotSupported))
	}},
}

func ask(method, body string) func() *http.Request {
	return func() *http.Request {
		var from io.Reader
		if body != "" {
			from = strings.NewReader(body)
		}
		r, err := http.NewRequest(method, "http://watchkeeper.test/path?query=1", from)
		if err != nil {
			panic(err)
		}
		return r
	}
}

func unknownLength() *http.Request {
	r := ask("POST", "")()
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("one"), strings.NewReader("two"))), -1
	return r
}

func form() *http.Request {
	r := ask("POST", "a=1&b=2")()
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// stalled has a body that ends after an hour.
func stalled() *http.Request {
	r := unknownLength()
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader("one"), sleeper{}))
	return r
}

type sleeper struct{}

func (sleeper) Read([]byte) (int, error) { time.Sleep(time.Hour); return 0, io.EOF }

func (r *report) request(req *http.Request) {
	header := []string{}
	for name, values := range req.Header {
		header = append(header, fmt.Sprintf("%s: %q", name, values))
	}
	slices.Sort(header)
	r.add("%s %s %s %s %v", req.Method, req.RequestURI, req.Host, req.Proto, req.URL)
	r.add("%v", header)
	r.add("length %d, encoding %v, close %v, trailer %v, remote %q, TLS %v", req.ContentLength, req.TransferEncoding, req.Close, req.Trailer, req.RemoteAddr, req.TLS != nil)
	body, err := io.ReadAll(req.Body)
	r.add("body %q, %v", body, err)
}

func (r *report) context(req *http.Request) {
	_, server := req.Context().Value(http.ServerContextKey).(*http.Server)
	r.add("server: %v, address: %v, ended: %v", server, req.Context().Value(http.LocalAddrContextKey), req.Context().Err())
}

func (r *report) closed(req *http.Request) {
	req.Body.Close()
	_, err := req.Body.Read(make([]byte, 1))
	r.add("read after Close fails: %v", err != nil)
}

// TestTooLong has a handler that writes more than its Content-Length. It is told so, as with
// HTTP/1.1, and the client gets what was declared.
func TestTooLong(t *testing.T) {
	if standard {
		t.Skip("net/http sends too much")
	}
	bubble(t, "one connection", func(t *testing.T) {
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			for i, want := range []error{nil, http.ErrContentLength} {
				if _, err := w.Write([]byte("more")); !errors.Is(err, want) {
					t.Errorf("write %d: %v", i, err)
				}
			}
		}))
		if a := h2test.New(t, s.Connect(t)).Exchange("/"); !a.Ended || string(a.Body) != "more" {
			t.Errorf("%v", a)
		}
	})
}

// TestParity compares what handlers and clients see with what they see with net/http's
// own HTTP/2 server.
func TestParity(t *testing.T) {
	for name, one := range exchanges {
		bubble(t, name, func(t *testing.T) {
			request := one.request
			if request == nil {
				request = ask("GET", "")
			}
			var seen [2]report // by net/http's server, and ours
			var reports [2][]string
			for i := range seen {
				hs := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { one.handler(&seen[i], w, r) }))
				if i == 1 {
					h2.Configure(hs)
				}
				reports[i] = exchange(t, h2test.Start(t, hs, nil), request())
			}
			time.Sleep(time.Minute) // a handler may go on after its answer
			for i := range seen {
				seen[i].mu.Lock()
				reports[i] = append(reports[i], seen[i].lines...)
				seen[i].mu.Unlock()
			}
			if d := cmp.Diff(reports[0], reports[1]); d != "" {
				t.Errorf("(-net/http +ours)\n%s", d)
			}
		})
	}
}

// exchange sends a request, and returns what the client sees.
func exchange(t *testing.T, s *h2test.Server, r *http.Request) []string {
	t.Helper()
	var client report
	transport := s.Transport()
	transport.DisableCompression = true
	transport.ExpectContinueTimeout = time.Minute
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			client.add("%d %v", code, header)
			return nil
		},
	}))
	resp, err := transport.RoundTrip(r)
	if err != nil {
		client.add("error: %v", err)
		return client.lines
	}
	defer resp.Body.Close()
	if len(resp.Trailer) > 0 { // with trailers only net/http adds a length
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
	client.add("%s %s length %d, uncompressed %v, close %v", resp.Proto, resp.Status, resp.ContentLength, resp.Uncompressed, resp.Close)
	header := []string{}
	for name, values := range resp.Header {
		header = append(header, fmt.Sprintf("%s: %q", name, values))
	}
	slices.Sort(header)
	client.lines = append(client.lines, header...)
	body, err := io.ReadAll(resp.Body)
	if bytes.Equal(body, pattern(len(body))) && len(body) > 100 {
		client.add("%d bytes of the pattern, %v", len(body), err)
	} else {
		client.add("%.100q and %d bytes, %v", body, len(body), err)
	}
	client.add("trailers: %v", resp.Trailer)
	return client.lines
}
