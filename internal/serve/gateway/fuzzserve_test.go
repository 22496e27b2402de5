// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// FuzzServe sends arbitrary requests to a whole gateway in front of an API server that
// never fails: the gateway has to answer without a server error, and its caches stay
// within their bounds.
func FuzzServe(f *testing.F) {
	g := fuzzedGateway(f)
	f.Fuzz(func(t *testing.T, method, uri, header string) {
		r, ok := requestOf(method, uri, header)
		if !ok {
			return
		}
		w := serveImpatiently(t, g, r)
		if w.Code >= 500 && w.Code != http.StatusNotImplemented { // net/http answers 501 to odd encodings
			t.Errorf("%s %s: %d %s", method, uri, w.Code, w.Body)
		}
		g.checkBounds(t)
	})
}

// FuzzHandshake sends WebSocket handshakes to a gateway that serves the watch itself.
// The gateway agrees only to a protocol that the client offered.
func FuzzHandshake(f *testing.F) {
	g := fuzzedGateway(f)
	f.Fuzz(func(t *testing.T, key, protocols, origin, more string) {
		for _, s := range []string{key, protocols, origin} {
			if strings.ContainsAny(s, "\r\n") {
				return
			}
		}
		r, ok := requestOf(http.MethodGet, "/api/v1/pods?watch=true&resourceVersion=0", "Connection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+key+"\r\nSec-WebSocket-Protocol: "+protocols+"\r\nOrigin: "+origin+more)
		if !ok {
			return
		}
		// The library that serves it shares these values with the request.
		offered := strings.Split(r.Header.Get("Sec-WebSocket-Protocol"), ",")
		key = r.Header.Get("Sec-WebSocket-Key")
		w := serveImpatiently(t, g, r)
		if w.peer == nil {
			if w.Code >= 500 {
				t.Errorf("%q: %d %s", r.Header, w.Code, w.Body)
			}
			return
		}
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(w.sent())), r)
		if err != nil {
			t.Fatalf("%q: %v in %q", r.Header, err, w.sent())
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 500 {
			t.Errorf("%q: %q", r.Header, w.sent())
		}
		if resp.StatusCode != http.StatusSwitchingProtocols {
			return
		}
		sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
		if got := resp.Header.Get("Sec-WebSocket-Accept"); got != base64.StdEncoding.EncodeToString(sum[:]) {
			t.Errorf("key %q is accepted with %q", key, got)
		}
		if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != "" &&
			!slices.ContainsFunc(offered, func(p string) bool { return strings.TrimSpace(p) == got }) {
			t.Errorf("protocol %q is accepted, of %q", got, offered)
		}
		if request.BringsToken(r.Header) {
			t.Errorf("a caller with a token is served from the cache: %q", r.Header)
		}
	})
}

// A fuzzed is a gateway that has Pods of a fake API server in its cache.
type fuzzed struct {
	*Gateway
	goroutines int // when it was idle
}

// neverFailing turns the upstream's failures, as for an RV of the future, into
// refusals.
type neverFailing struct{ http.ResponseWriter }

func (w neverFailing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w neverFailing) WriteHeader(code int) {
	if code >= 500 {
		code = http.StatusBadRequest
	}
	w.ResponseWriter.WriteHeader(code)
}

func fuzzedGateway(f *testing.F) *fuzzed {
	f.Helper()
	api := newFakeAPI(f)
	api.Control(func(w http.ResponseWriter, _ *fakeapi.Request, next func(http.ResponseWriter)) { next(neverFailing{w}) })
	api.fill()
	g, _ := api.front()
	podsOf(f, g)
	return &fuzzed{g, runtime.NumGoroutine()}
}

// checkBounds fails if the gateway remembers more than it may (T10). Pods are the only
// resource that can be watched.
func (g *fuzzed) checkBounds(t *testing.T) {
	t.Helper()
	watched, refused := g.reads.cache.Sizes()
	known, longest := g.reads.discovery.Known(), 0
	for _, gv := range known {
		longest = max(longest, len(gv))
	}
	if watched > 1 || refused > 0 || len(known) > 1000 || longest > 2*253+1 {
		t.Errorf("%d resources watched, %d refused, %d group versions known, of up to %d bytes", watched, refused, len(known), longest)
	}
	if n := g.reads.encodings.Bytes(); n > encodingBytes {
		t.Errorf("%d bytes of encodings", n)
	}
	series := make(chan prometheus.Metric, 1000)
	g.metrics.total.Collect(series)
	if len(series) > 300 {
		t.Errorf("%d time series", len(series))
	}
	// The goroutines of a request end soon; only idle connections may remain.
	for range 100 {
		if runtime.NumGoroutine() < g.goroutines+200 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d in the beginning", runtime.NumGoroutine(), g.goroutines)
}

// An impatient is a client that leaves soon after the answer has begun.
type impatient struct {
	*httptest.ResponseRecorder
	leave func()
	peer  net.Conn // the client's end of a hijacked connection
	heard strings.Builder
	ended chan struct{} // closed when the client's end of the connection is closed
}

// serveImpatiently answers r for an impatient client.
func serveImpatiently(t *testing.T, g http.Handler, r *http.Request) (w *impatient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w = &impatient{ResponseRecorder: httptest.NewRecorder(), leave: cancel}
	defer func() {
		// A client that leaves, or whose body breaks off, gets no answer.
		if v := recover(); v != nil && (v != http.ErrAbortHandler || ctx.Err() == nil && r.ContentLength == 0) {
			panic(v)
		}
	}()
	g.ServeHTTP(w, r.WithContext(ctx))
	return w
}

func (w *impatient) WriteHeader(code int) {
	time.AfterFunc(time.Millisecond, w.leave)
	w.ResponseRecorder.WriteHeader(code)
}

// Hijack implements http.Hijacker.
func (w *impatient) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, peer := net.Pipe()
	w.peer, w.ended = peer, make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { w.leave() })
	go func() {
		defer close(w.ended)
		_, _ = io.Copy(&w.heard, io.LimitReader(peer, 1<<20))
		peer.Close()
	}()
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), nil
}

// sent returns the bytes written to a hijacked connection, after its end.
func (w *impatient) sent() string {
	<-w.ended
	return w.heard.String()
}
