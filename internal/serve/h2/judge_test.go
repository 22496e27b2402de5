// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

const (
	// maxStreams is how many streams a connection of most tests may have.
	maxStreams = 20
	// maxHeaderBytes is how long the headers of a request may be in most tests.
	maxHeaderBytes = 32 << 10
)

// standard makes net/http's own HTTP/2 server the one that is judged, for comparison. It
// fails some tests.
var standard = os.Getenv("WATCHKEEPER_HTTP2") == "standard"

// bubble runs a test with its own clock (testing/synctest), which stands while a
// goroutine runs: limits per second are the same on a slow machine. The test fails if a
// goroutine remains.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			// The last cleanup: what waits for a timer of the server has a minute to end.
			t.Cleanup(func() { time.Sleep(time.Minute) })
			test(t)
		})
	})
}

// start serves a handler over HTTP/2 until the test ends.
func start(t testing.TB, handler http.Handler, options ...func(*http.Server)) *h2test.Server {
	t.Helper()
	hs := newServer(handler)
	for _, o := range options {
		o(hs)
	}
	if !standard {
		h2.Configure(hs)
	}
	return h2test.Start(t, hs, h2.Listener)
}

// newServer returns a server for HTTP/2 that nothing serves yet.
func newServer(handler http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:        handler,
		Protocols:      &protocols,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
}

// transports are a server without TLS, and with it.
var transports = []func(*testing.T) func(*http.Server){plain, secured}

func plain(*testing.T) func(*http.Server) { return func(*http.Server) {} }

// streams sets how many streams a connection may have.
func streams(n int) func(*http.Server) {
	return func(hs *http.Server) { hs.HTTP2.MaxConcurrentStreams = n }
}

// A gauge counts the requests of a handler.
type gauge struct {
	mu                  sync.Mutex // guards the fields below
	running, most, seen int
}

// count makes a handler count.
func (g *gauge) count(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.seen++
		g.running++
		g.most = max(g.most, g.running)
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.running--
			g.mu.Unlock()
		}()
		next(w, r)
	}
}

// total returns how many requests there were, and how many at the same time.
func (g *gauge) total() (seen, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen, g.most
}

// gate is a handler that ends when it is opened, whatever happens to its request. The test
// opens it at its end.
func gate(t *testing.T) (handler http.HandlerFunc, open func()) {
	opened := make(chan struct{})
	open = sync.OnceFunc(func() { close(opened) })
	t.Cleanup(open)
	return func(http.ResponseWriter, *http.Request) { <-opened }, open
}

// hello is a handler with a short answer.
func hello(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }
