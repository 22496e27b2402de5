// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// readBuffer is the kernel's receive buffer of a client that does not read, so that the
// gateway's writes block after few bytes.
const readBuffer = 64 << 10

// dial opens a watch over a WebSocket.
func dial(t *testing.T, base, path string) *websocket.Conn {
	t.Helper()
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(base, "http")+path, base)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", config.Location.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(readBuffer); err != nil {
		t.Fatal(err)
	}
	ws, err := websocket.NewClient(config, conn)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

// TestWatchKeepsNoView: an open watch holds neither the state that it began with nor the
// log at that time (T10).
func TestWatchKeepsNoView(t *testing.T) {
	for _, how := range []string{"HTTP", "WebSocket"} {
		b := newBench(t, podList(10, pod("ns", "a", 3)))
		freed := make(chan struct{})
		runtime.SetFinalizer(b.res.Timeline.View(), func(*timeline.View) { close(freed) })
		const path = "/api/v1/pods?watch=1&resourceVersion=0"
		if how == "HTTP" {
			resp, err := http.Get(b.server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
		} else {
			var first string
			if err := websocket.Message.Receive(dial(t, b.server.URL, path), &first); err != nil {
				t.Fatal(err)
			}
		}
		for rv := range uint64(20) {
			b.apply(kube.Modified, pod("ns", "a", 11+rv))
		}
		deadline := time.After(time.Minute)
		for done := false; !done; {
			runtime.GC()
			select {
			case <-freed:
				done = true
			case <-deadline:
				t.Fatalf("%s: the first view is still held", how)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

// TestWebSocketThatDoesNotRead: such a client delays neither the end of its watch nor
// the end of the gateway.
func TestWebSocketThatDoesNotRead(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	apiserver := httptest.NewServer(f)
	defer apiserver.Close()
	defer apiserver.CloseClientConnections()
	g, stop := f.start(&rest.Config{Host: apiserver.URL})
	server := httptest.NewServer(g)
	for i := range 8 {
		f.write("ns", fmt.Sprint("p", i), 1<<20)
	}
	res := podsOf(t, g)
	until(t, "a list in the cache", func() bool { return res.State().Readable })
	// It counts as open before the handshake is answered.
	dial(t, server.URL, "/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=1")
	for res.OpenWatches() > 0 { // until its timeout
		time.Sleep(10 * time.Millisecond)
	}
	dial(t, server.URL, "/api/v1/pods?watch=1&resourceVersion=0")
	for res.OpenWatches() == 0 {
		time.Sleep(time.Millisecond)
	}
	server.Config.Close()
	stop()
}
