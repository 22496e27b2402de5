// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// recordUpstream is a server that keeps the head of the request it gets, byte
// for byte, and gives a fixed answer.
func recordUpstream(t *testing.T, answer string) (addr string, heads <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	out := make(chan string, 16)
	go func() {
		defer close(out)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			head := readHead(bufio.NewReader(conn))
			io.WriteString(conn, answer)
			conn.Close()
			out <- head
		}
	}()
	return l.Addr().String(), out
}

func readHead(r *bufio.Reader) string {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String()
		}
	}
}

// sortedHead returns the request line and the header lines in order, since
// net/http sorts what it sends.
func sortedHead(head string) []string {
	lines := strings.Split(strings.TrimRight(head, "\r\n"), "\r\n")
	sort.Strings(lines[1:])
	return lines
}

func TestRequestArrivesByteForByte(t *testing.T) {
	for _, tc := range []struct {
		name          string
		request, want string // without Host; want "" means the same
	}{
		{name: "plain", request: "GET /api/v1/namespaces/a/pods/p/log HTTP/1.1\nAccept: */*"},
		{name: "no user agent, none added", request: "GET /api HTTP/1.1"},
		{name: "user agent kept", request: "GET /api HTTP/1.1\nUser-Agent: curl/8.5.0"},
		{name: "escaped slash", request: "GET /api/v1/a%2Fb/%2e%2E/c HTTP/1.1"},
		{name: "odd escapes", request: "GET /apis/%7e%7E/%C3%a9/a+b HTTP/1.1"},
		{name: "double slashes and dots", request: "GET /api//v1/../v1/./pods//log/ HTTP/1.1"},
		{name: "leading double slash", request: "GET //api/v1 HTTP/1.1"},
		{name: "bytes that net/url escapes", request: "GET /a|b%2Fc\"<{}> HTTP/1.1"},
		{name: "unparsable query", request: "GET /api?a=%zz;b=1&c&=d&&%2f=+ HTTP/1.1"},
		{name: "empty query", request: "GET /api? HTTP/1.1"},
		{name: "query with question mark", request: "GET /api?a?b=/%2F HTTP/1.1"},
		{name: "encodings as sent", request: "GET /api HTTP/1.1\nAccept-Encoding: br, gzip;q=0.5"},
		{name: "own credentials", request: "GET /api HTTP/1.1\nAuthorization: Bearer mine"},
		{name: "repeated headers", request: "GET /api HTTP/1.1\nX-A: 1\nX-A: 2"},
		{
			name:    "forwarding headers of the client's own",
			request: "GET /api HTTP/1.1\nForwarded: for=a\nX-Forwarded-For: 10.0.0.1\nX-Forwarded-Host: h\nX-Forwarded-Proto: https",
		},
		{name: "other methods", request: "PROPFIND /api HTTP/1.1"},
		{name: "delete without a body", request: "DELETE /api/v1/namespaces/a HTTP/1.1"},
		{name: "body", request: "PATCH /api HTTP/1.1\nContent-Length: 2\nContent-Type: application/json-patch+json"},
		{
			name:    "offer of HTTP/2 ends here",
			request: "GET /api HTTP/1.1\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABk",
			want:    "GET /api HTTP/1.1",
		},
		{
			name:    "hop-by-hop headers end here",
			request: "GET /api HTTP/1.1\nConnection: X-Hop\nX-Hop: 1\nTE: trailers, deflate\nKeep-Alive: 5",
			want:    "GET /api HTTP/1.1\nTe: trailers",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			addr, heads := recordUpstream(t, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			r := newRigFor(t, &rest.Config{Host: "http://" + addr}, rigOptions{})
			conn := r.dial()
			fmt.Fprintf(conn, "%s\r\nHost: localhost\r\n\r\n{}", strings.ReplaceAll(tc.request, "\n", "\r\n"))
			got := sortedHead(<-heads)
			if tc.want == "" {
				tc.want = tc.request
			}
			want := sortedHead(strings.ReplaceAll(tc.want+"\nHost: "+addr, "\n", "\r\n"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("upstream got something else (-sent +got):\n%s", diff)
			}
			if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusNoContent {
				t.Errorf("answer: %v, %v", res, err)
			}
		})
	}
}

func TestResponseArrivesAsSent(t *testing.T) {
	const date = "Sat, 01 Aug 2026 00:00:00 GMT"
	for _, tc := range []struct {
		name   string
		answer string
	}{
		{"no content type, none guessed", "HTTP/1.1 200 OK\nContent-Length: 6\nDate: " + date + "\n\n<html>"},
		{"encoded body is left alone", "HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: 3\nContent-Type: a/b\nDate: " + date + "\n\n\x1f\x8b\x08"},
		{"repeated headers", "HTTP/1.1 200 OK\nContent-Length: 0\nDate: " + date + "\nWarning: 299 - \"a\"\nWarning: 299 - \"b\"\n\n"},
		{"errors as they came", "HTTP/1.1 429 Too Many Requests\nContent-Length: 4\nContent-Type: text/plain\nDate: " + date + "\nRetry-After: 3\n\nwait"},
		{"not modified", "HTTP/1.1 304 Not Modified\nDate: " + date + "\nEtag: \"x\"\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			head, body, _ := strings.Cut(tc.answer, "\n\n")
			answer := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body
			addr, heads := recordUpstream(t, answer)
			r := newRigFor(t, &rest.Config{Host: "http://" + addr}, rigOptions{})
			conn := r.dial()
			io.WriteString(conn, "GET /api HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			<-heads
			raw, err := io.ReadAll(conn)
			if err != nil {
				t.Fatal(err)
			}
			gotHead, gotBody, _ := strings.Cut(string(raw), "\r\n\r\n")
			gotHead = strings.Replace(gotHead, "\r\nConnection: close", "", 1) // of the client's connection
			for _, added := range []string{"Content-Security-Policy: " + sandbox, "X-Content-Type-Options: nosniff"} {
				if strings.Count(gotHead, "\r\n"+added) != 1 {
					t.Errorf("no %s in\n%s", added, gotHead)
				}
				gotHead = strings.Replace(gotHead, "\r\n"+added, "", 1)
			}
			if diff := cmp.Diff(sortedHead(strings.ReplaceAll(head, "\n", "\r\n")), sortedHead(gotHead)); diff != "" {
				t.Errorf("head (-sent +got):\n%s", diff)
			}
			if gotBody != body {
				t.Errorf("body %q, want %q", gotBody, body)
			}
		})
	}
}

// eachTransport runs a test over each pair of client and upstream protocols.
func eachTransport(t *testing.T, test func(t *testing.T, opts rigOptions)) {
	for _, tlsUpstream := range []bool{false, true} {
		for _, h2c := range []bool{false, true} {
			name := fmt.Sprintf("client=%s/upstream=%s", map[bool]string{false: "http1", true: "h2c"}[h2c],
				map[bool]string{false: "http1", true: "tls-h2"}[tlsUpstream])
			t.Run(name, func(t *testing.T) { test(t, rigOptions{tlsUpstream: tlsUpstream, h2c: h2c}) })
		}
	}
}

func TestUpstreamSpeaksHTTP2OverTLS(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }), rigOptions{tlsUpstream: true})
	if got := readAll(t, r.get("/api")); got != "HTTP/2.0" {
		t.Errorf("upstream was spoken to in %s", got)
	}
}

func TestLinesArriveAsTheyAreWritten(t *testing.T) {
	eachTransport(t, func(t *testing.T, opts rigOptions) {
		seen := make(chan struct{})
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			http.NewResponseController(w).Flush() // the header alone comes first
			<-seen
			for i := range 3 {
				fmt.Fprintf(w, "line %d\n", i)
				http.NewResponseController(w).Flush()
				<-seen
			}
		}), opts)
		res := r.get("/api/v1/namespaces/default/pods/p/log?follow=true")
		seen <- struct{}{}
		lines := bufio.NewReader(res.Body)
		for i := range 3 {
			line, err := lines.ReadString('\n')
			if want := fmt.Sprintf("line %d\n", i); err != nil || line != want {
				t.Fatalf("got %q, %v; want %q", line, err, want)
			}
			seen <- struct{}{}
		}
		if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
			t.Errorf("at the end: %q, %v", rest, err)
		}
	})
}

func TestTrailers(t *testing.T) {
	eachTransport(t, func(t *testing.T, opts rigOptions) {
		gotRequest := make(chan string, 1)
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Announced")
			io.Copy(w, r.Body)
			gotRequest <- r.Trailer.Get("X-Sum")
			w.Header().Set("X-Announced", "1")
			w.Header().Set(http.TrailerPrefix+"X-Late", "2")
		}), opts)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL+"/api", io.MultiReader(strings.NewReader("body")))
		if err != nil {
			t.Fatal(err)
		}
		req.Trailer = http.Header{"X-Sum": {"42"}}
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body := readAll(t, res); body != "body" {
			t.Errorf("body %q", body)
		}
		if got := <-gotRequest; got != "42" {
			t.Errorf("request trailer %q", got)
		}
		if diff := cmp.Diff(http.Header{"X-Announced": {"1"}, "X-Late": {"2"}}, res.Trailer); diff != "" {
			t.Errorf("trailers (-want +got):\n%s", diff)
		}
	})
}

// TestInformationalResponses: they are forwarded, except for early hints, which a browser
// follows before it has the sandbox.
func TestInformationalResponses(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Link", "</b>")
		w.WriteHeader(http.StatusProcessing)
		w.Header().Del("Link")
		w.WriteHeader(http.StatusOK)
	}), rigOptions{tlsUpstream: true})
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, " ", h.Get("Link")))
			return nil
		},
	})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+"/api", nil)
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if diff := cmp.Diff([]string{"102 </b>"}, hints); diff != "" {
		t.Error(diff)
	}
}

func TestExpectContinue(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }), rigOptions{tlsUpstream: true})
	conn := r.dial()
	in := bufio.NewReader(conn)
	io.WriteString(conn, "POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
	if head := readHead(in); !strings.HasPrefix(head, "HTTP/1.1 100 ") {
		t.Fatalf("got %q, want 100 Continue", head)
	}
	io.WriteString(conn, "body")
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, res); got != "body" {
		t.Errorf("got %q", got)
	}
}

func TestServerPath(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RequestURI) })
	for _, tc := range []struct {
		appended bool
		want     string
	}{{false, "/api/a%2Fb?x=1"}, {true, "/k8s/clusters/c%2D1/api/a%2Fb?x=1"}} {
		r := newRig(t, echo, rigOptions{
			upstream: upstream.Options{AppendServerPath: tc.appended},
			config:   func(c *rest.Config) { c.Host += "/k8s/clusters/c%2D1/" },
		})
		if got := readAll(t, r.get("/api/a%2Fb?x=1")); got != tc.want {
			t.Errorf("append=%v: %s, want %s", tc.appended, got, tc.want)
		}
	}
}

func TestClientDisconnectIsNoError(t *testing.T) {
	eachTransport(t, func(t *testing.T, opts rigOptions) {
		left, ended := make(chan struct{}), make(chan struct{})
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			http.NewResponseController(w).Flush()
			<-left
			<-r.Context().Done() // the gateway cancels its request
		}), opts)
		r.get("/api/v1/pods/x/log?follow=true").Body.Close()
		close(left)
		<-ended
		r.stop()
		if got := r.complaints(); got != "" {
			t.Errorf("logged:\n%s", got)
		}
	})
}

func TestTruncatedResponseIsAborted(t *testing.T) {
	eachTransport(t, func(t *testing.T, opts rigOptions) {
		r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "half of")
			http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond) // so that the body is in several segments
			panic(http.ErrAbortHandler)
		}), opts)
		res := r.get("/api")
		if body, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("read %q to a clean end", body)
		}
		if got := r.complaints(); !strings.Contains(got, "upstream broke off a response") {
			t.Errorf("not logged: %q", got)
		}
	})
}
