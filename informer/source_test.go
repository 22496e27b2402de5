// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// TestSourceClose: after Run has ended and the source was closed, neither a connection nor
// a goroutine remains. A later informer of the source opens new connections.
func TestSourceClose(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		api := informertest.New(informertest.Options{})
		api.Put("pods", script.Pod("a", 1))
		conns := &openConns{open: map[net.Conn]bool{}}
		server := httptest.NewUnstartedServer(api)
		server.Config.ConnState = conns.note
		var src *Source
		if server.EnableHTTP2 = http2; http2 {
			server.StartTLS()
			base, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			src = NewSource(base, server.Client().Transport)
		} else {
			server.Start()
			var err error
			if src, err = FromURL(server.URL); err != nil {
				t.Fatal(err)
			}
		}
		defer server.Close()
		before := runtime.NumGoroutine()
		for n := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			i := New(src, pods, Raw(), Options{})
			if err := i.Start(ctx); err != nil {
				t.Fatal(err)
			}
			if err := i.WaitSynced(ctx); err != nil {
				t.Fatal(err)
			}
			if opened, _ := conns.count(); opened <= n {
				t.Errorf("HTTP/2 %t: %d connections in %d runs", http2, opened, n+1)
			}
			cancel()
			if err := i.Wait(); err != nil {
				t.Fatal(err)
			}
			src.Close()
			remain := func() bool {
				_, open := conns.count()
				return open > 0 || runtime.NumGoroutine() > before
			}
			for until := time.Now().Add(5 * time.Second); remain() && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
			if remain() {
				_, open := conns.count()
				t.Fatalf("HTTP/2 %t: in run %d, %d connections and %d goroutines remain", http2, n, open, runtime.NumGoroutine()-before)
			}
		}
	}
	NewSource(&url.URL{}, transportFunc(nil)).Close()
}

// openConns are the connections of a server.
type openConns struct {
	mu     sync.Mutex
	opened int
	open   map[net.Conn]bool
}

func (c *openConns) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.opened++
		c.open[conn] = true
	case http.StateClosed:
		delete(c.open, conn)
	}
}

func (c *openConns) count() (opened, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened, len(c.open)
}
