// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// A fakeAPI is an API server of Pods that counts requests and can delay responses. It
// sends the bookmark of a probe at once, and ends the watches of clients other than
// the gateway after the available events.
type fakeAPI struct {
	mute    atomic.Bool // requests get no answer
	refused atomic.Bool // the gateway's lists and watches get 429, and open watches end with the next event

	*fakeapi.Server
	t testing.TB

	mu       sync.Mutex    // guards the fields below
	held     chan struct{} // if not nil, the reflector's streams wait until it is closed
	staleRV  uint64        // if not 0, the RV of lists
	streams  int           // of the reflector, so far
	dead     int           // the first so many streams send nothing
	lasting  bool          // watches that are passed through do not end at once
	asked    map[string]int
	gate     chan struct{} // if not nil, a list with limit=1 waits for a value
	arrivals chan struct{} // gets a value for each list that waits
}

func newFakeAPI(t testing.TB) *fakeAPI {
	f := &fakeAPI{
		Server: fakeapi.New(fakeapi.Options{Step: 3, LastBookmark: 2990 * time.Millisecond}),
		t:      t, asked: map[string]int{},
	}
	f.Control(f.control)
	return f
}

// write creates or changes a Pod, of about size bytes.
func (f *fakeAPI) write(namespace, name string, size int) uint64 {
	return f.Put("pods", pod(namespace, name, 1, "filling", strings.Repeat("x", size)).JSON)
}

// elsewhere raises the RV, as writes to other resources do.
func (f *fakeAPI) elsewhere() uint64 { return f.Advance(10) }

// hold keeps the reflector's streams from sending, or releases them.
func (f *fakeAPI) hold(held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held != nil {
		close(f.held)
		f.held = nil
	}
	if held {
		f.held = make(chan struct{})
	}
}

// holdOpen keeps the open streams of the reflector from sending for ever, but no later
// ones.
func (f *fakeAPI) holdOpen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = f.streams
}

// count returns the number of requests of a kind since the last call.
func (f *fakeAPI) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer delete(f.asked, what)
	return f.asked[what]
}

// total returns the number of requests of all kinds since they were last counted.
func (f *fakeAPI) total() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.asked {
		n += k
	}
	return n
}

func (f *fakeAPI) control(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
	if f.mute.Load() {
		<-r.Context().Done()
		return
	}
	ours := r.UserAgent() == "watchkeeper"
	what := r.Method + " " + r.URL.Path
	switch {
	case r.Verb == "watch" && ours && r.Query.Get("timeoutSeconds") == "3":
		what = "probe"
	case r.Verb == "list" && ours && r.Query.Get("limit") == "1":
		what = "latest"
	case r.Verb == "watch" || r.Verb == "list":
		what = r.Verb
	}
	f.mu.Lock()
	f.asked[what]++
	if what == "watch" && ours {
		f.streams++
	}
	stream := f.streams
	gate, arrivals, staleRV, lasting := f.gate, f.arrivals, f.staleRV, f.lasting
	f.mu.Unlock()
	if f.refused.Load() && ours && (r.Verb == "list" || r.Verb == "watch") {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	switch {
	case (what == "latest" || what == "list" && ours) && gate != nil:
		arrivals <- struct{}{}
		<-gate
	case what == "watch" && ours:
		w = &heldWriter{w, f, r, stream}
	case what == "watch" && !lasting:
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		r.Request = r.WithContext(ctx)
	}
	if staleRV > 0 && r.Verb == "list" {
		list := httptest.NewRecorder()
		next(list)
		old := listRV.Find(list.Body.Bytes()) // the first match is the list's own
		_, _ = w.Write(bytes.Replace(list.Body.Bytes(), old, fmt.Appendf(nil, `"metadata":{"resourceVersion":"%d"`, staleRV), 1))
		return
	}
	next(w)
}

var listRV = regexp.MustCompile(`"metadata":{"resourceVersion":"[0-9]+"`)

// A heldWriter is the response of a watch; its writes wait while the streams are held.
type heldWriter struct {
	http.ResponseWriter
	f *fakeAPI
	r *fakeapi.Request
	n int // of the stream
}

func (h *heldWriter) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *heldWriter) Write(b []byte) (int, error) {
	if h.f.refused.Load() {
		panic(http.ErrAbortHandler)
	}
	h.f.mu.Lock()
	held := h.f.held
	if h.n <= h.f.dead {
		held = make(chan struct{})
	}
	h.f.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-h.r.Context().Done():
		}
	}
	return h.ResponseWriter.Write(b)
}

// front starts a gateway in front of the API server.
func (f *fakeAPI) front() (g *Gateway, url string) {
	apiserver := httptest.NewServer(f)
	g, stop := f.start(&rest.Config{Host: apiserver.URL})
	server := httptest.NewServer(g)
	f.t.Cleanup(func() {
		server.CloseClientConnections()
		stop()
		server.Close()
		apiserver.CloseClientConnections()
		apiserver.Close()
	})
	return g, server.URL
}

// frontInMemory is front without sockets, so that time in a bubble of testing/synctest
// is virtual. The client reaches the gateway as http://localhost.
func (f *fakeAPI) frontInMemory() (g *Gateway, client *http.Client) {
	apiserver := fakeapi.NewNetwork(f)
	g, stop := f.start(&rest.Config{Host: "http://apiserver", Dial: apiserver.Dial})
	network := fakeapi.NewNetwork(g)
	f.t.Cleanup(func() {
		network.Close()
		stop()
		apiserver.Close()
	})
	return g, network.Client()
}

// start starts a gateway until stop is called.
func (f *fakeAPI) start(cfg *rest.Config) (g *Gateway, stop func()) {
	f.t.Helper()
	up, err := upstream.New(cfg, upstream.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	if g, err = New(Options{Upstream: up, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		f.t.Fatal(err)
	}
	end := runs(f.t, g)
	return g, func() {
		end()
		up.Close()
	}
}

// runs runs a gateway until end is called.
func runs(t testing.TB, g *Gateway) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error("Run:", err)
		}
	}
}

// podsOf reads Pods and returns their watched resource in the gateway's cache.
func podsOf(t testing.TB, g *Gateway) *watchcache.Resource {
	t.Helper()
	rec := httptest.NewRecorder()
	g.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/v1/pods?resourceVersion=0", nil))
	if rec.Code != http.StatusOK {
		t.Fatal(rec.Code, rec.Body)
	}
	return g.reads.cache.Watched(pods)
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timeout waiting for " + what)
		}
	}
}

// rvOf returns the RV of a list.
func rvOf(t *testing.T, body string) uint64 {
	t.Helper()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v in %.200s", err, body)
	}
	rv, err := kube.ParseRV(list.Metadata.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return rv
}
