// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// separator is between the names and values of a fuzzed request.
const separator = "\x1f"

// FuzzRequest sends a header list, valid or not. The server refuses it, or its handler
// sees a request that says the same when it is passed on over HTTP/1.1, as the gateway
// does with requests that it does not answer itself: one request with the same method,
// path, host and fields. So nothing can be smuggled. In both cases the connection goes on.
func FuzzRequest(f *testing.F) {
	for _, pairs := range malformed {
		f.Add(strings.Join(pairs, separator))
	}
	for _, one := range wellFormed {
		f.Add(strings.Join(one.pairs, separator))
	}
	f.Fuzz(func(t *testing.T, text string) {
		pairs := strings.Split(text, separator)
		if len(pairs)%2 != 0 || len(pairs) > 60 || len(text) > maxHeaderBytes/2 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(func() { time.Sleep(time.Minute) })
			sendFuzzed(t, pairs)
		})
	})
}

func sendFuzzed(t *testing.T, pairs []string) {
	t.Helper()
	var got *http.Request
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "/after-it" {
			got = r
		}
		hello(w, r)
	}))
	s.HTTP.DisableGeneralOptionsHandler = true
	c := h2test.New(t, s.Connect(t))
	id, err := c.Open(true, pairs...)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Answer(id)
	switch {
	case got != nil:
		if a.Reset || a.Status != "200" {
			t.Errorf("a handler has seen the request, and the answer is %v", a)
		}
		passesOn(t, got, pairs)
	case a.Status != "400" && (!a.Reset || a.Code != http2.ErrCodeProtocol):
		t.Errorf("refused with %v", a)
	}
	if a := c.Exchange("/after-it"); a.Status != "200" {
		t.Errorf("afterwards: %v", a)
	}
}

// passesOn passes a request on over HTTP/1.1, and compares what comes there with what
// was sent.
func passesOn(t *testing.T, r *http.Request, pairs []string) {
	t.Helper()
	sent := map[string][]string{}
	for pair := range slices.Chunk(pairs, 2) {
		sent[pair[0]] = append(sent[pair[0]], pair[1])
	}
	host := append(sent[":authority"], sent["host"]...)
	if r.Method != sent[":method"][0] || len(host) > 0 && r.Host != host[0] {
		t.Errorf("the handler has seen %q at %q", r.Method, r.Host)
	}
	if r.Method == http.MethodConnect {
		return // is not passed on
	}
	if r.RequestURI != sent[":path"][0] {
		t.Errorf("the handler has seen the path %q", r.RequestURI)
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = "http", "upstream.test"
	if r.Host == "" {
		out.Host = "upstream.test"
	}
	var wire bytes.Buffer
	if err := out.Write(&wire); err != nil {
		return // net/http does not pass it on
	}
	text := wire.String()
	in := bufio.NewReader(&wire)
	arrived, err := http.ReadRequest(in)
	if err != nil {
		t.Fatalf("passed on, it cannot be read: %v\n%q", err, text)
	}
	if _, err := io.Copy(io.Discard, arrived.Body); err != nil {
		t.Errorf("passed on, its body cannot be read: %v", err)
	}
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		t.Errorf("passed on, %q follows it", rest)
	}
	if arrived.Method != r.Method || arrived.Host != out.Host || arrived.URL.Path != r.URL.Path || arrived.URL.RawQuery != r.URL.RawQuery {
		t.Errorf("passed on, %q %q at %q has become %q %q at %q", r.Method, r.URL, out.Host, arrived.Method, arrived.URL, arrived.Host)
	}
	for _, h := range []http.Header{arrived.Header, r.Header} { // what Write adds or leaves out
		h.Del("User-Agent")
		h.Del("Content-Length")
		h.Del("Trailer")
	}
	if cookie := r.Header["Cookie"]; len(cookie) > 0 { // an empty crumb at the end leaves "; "
		cookie[0] = strings.TrimSpace(cookie[0])
	}
	if d := cmp.Diff(r.Header, arrived.Header); d != "" {
		t.Errorf("passed on, the fields differ (-handler +there):\n%s", d)
	}
}
