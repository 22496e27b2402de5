// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
	"github.com/watchkeeper/watchkeeper/internal/watchcache"
)

// A fakeAPI is an API server that has Pods, as far as a gateway asks for them.
// As the real one, it sends no bookmarks in time but to a watch that ends soon;
// unlike it, it ends the watches of others than the gateway at once.
type fakeAPI struct {
	t testing.TB

	mu       sync.Mutex // guards what follows
	rv       uint64
	pods     map[kube.Key]*scan.Object
	frames   []scan.Frame
	changed  chan struct{} // closed when there is something new
	held     bool          // the streams of the reflector bring nothing
	lie      uint64        // what the lists say they are at, instead of rv
	oldest   uint64        // watches from before it have expired
	asked    map[string]int
	gate     chan struct{} // if there is one, a list of one item waits for a value
	arrivals chan struct{} // gets a value for each that waits
}

func newFakeAPI(t testing.TB) *fakeAPI {
	return &fakeAPI{t: t, rv: 100, pods: map[kube.Key]*scan.Object{}, changed: make(chan struct{}), asked: map[string]int{}}
}

// write creates or changes a Pod, of about size bytes.
func (f *fakeAPI) write(namespace, name string, size int) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rv += 3
	o := pod(namespace, name, f.rv, "filling", strings.Repeat("x", size))
	typ := kube.Added
	if f.pods[o.Key] != nil {
		typ = kube.Modified
	}
	f.pods[o.Key] = o
	f.publish(scan.Frame{Type: typ, Object: o})
	return f.rv
}

// elsewhere lets RVs go by, as writes to other resources do.
func (f *fakeAPI) elsewhere() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rv += 10
	return f.rv
}

func (f *fakeAPI) publish(e scan.Frame) {
	f.frames = append(f.frames, e)
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeAPI) hold(held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = held
	close(f.changed)
	f.changed = make(chan struct{})
}

// count returns how often something was asked for since the last call.
func (f *fakeAPI) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer delete(f.asked, what)
	return f.asked[what]
}

// total returns how often anything was asked for since the last count.
func (f *fakeAPI) total() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.asked {
		n += k
	}
	return n
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	what := r.Method + " " + r.URL.Path
	ours := r.UserAgent() == "watchkeeper"
	switch {
	case r.URL.Path == "/api/v1/pods" && q.Get("timeoutSeconds") == "3" && ours:
		what = "probe"
	case r.URL.Path == "/api/v1/pods" && q.Has("watch"):
		what = "watch"
	case r.URL.Path == "/api/v1/pods" && q.Get("limit") == "1" && ours:
		what = "latest"
	case r.URL.Path == "/api/v1/pods":
		what = "list"
	}
	f.mu.Lock()
	f.asked[what]++
	gate, arrivals := f.gate, f.arrivals
	f.mu.Unlock()
	switch what {
	case "GET /api/v1":
		io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}`)
	case "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	case "latest":
		if gate != nil {
			arrivals <- struct{}{}
			<-gate
		}
		f.list(w, 1)
	case "list":
		f.list(w, 1<<30)
	case "probe", "watch":
		f.watch(w, r, what == "probe", ours)
	default:
		f.get(w, r)
	}
}

func (f *fakeAPI) get(w http.ResponseWriter, r *http.Request) {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/pods/")
	f.mu.Lock()
	o := f.pods[kube.MakeKey(namespace, name)]
	f.mu.Unlock()
	if o == nil {
		http.NotFound(w, r)
		return
	}
	io.WriteString(w, o.JSON)
}

func (f *fakeAPI) list(w io.Writer, limit int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rv := f.rv
	if f.lie != 0 {
		rv = f.lie
	}
	fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[`, rv)
	for i, key := range slices.Sorted(maps.Keys(f.pods)) {
		if i == limit {
			break
		}
		if i > 0 {
			io.WriteString(w, ",")
		}
		brace, rest := f.pods[key].ListItem()
		io.WriteString(w, brace+rest)
	}
	io.WriteString(w, "]}\n")
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, probe, ours bool) {
	q := r.URL.Query()
	flush := http.NewResponseController(w).Flush
	send := func(typ kube.EventType, object string) { fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", typ, object) }
	bookmark := func(rv uint64, annotations string) {
		send(kube.Bookmark, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s}}`, rv, annotations))
	}
	f.mu.Lock()
	next := 0
	if q.Has("sendInitialEvents") {
		for _, key := range slices.Sorted(maps.Keys(f.pods)) {
			send(kube.Added, f.pods[key].JSON)
		}
		bookmark(f.rv, `,"annotations":{"k8s.io/initial-events-end":"true"}`)
		next = len(f.frames)
	} else {
		rv, err := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
		if err != nil {
			f.mu.Unlock()
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if rv < f.oldest {
			send(kube.Error, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old resource version","code":410}`)
			f.mu.Unlock()
			return
		}
		for next < len(f.frames) && f.frames[next].Object.RV <= rv {
			next++
		}
	}
	f.mu.Unlock()
	for {
		f.mu.Lock()
		for !(f.held && !probe) && next < len(f.frames) {
			send(f.frames[next].Type, f.frames[next].Object.JSON)
			next++
		}
		if probe {
			bookmark(f.rv, "")
			f.mu.Unlock()
			return
		}
		changed := f.changed
		f.mu.Unlock()
		if flush() != nil || !ours {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// front starts a gateway in front of the API server, with a client of its own.
func (f *fakeAPI) front() (g *Gateway, url string) {
	t := f.t
	t.Helper()
	apiserver := httptest.NewServer(f)
	up, err := upstream.New(&rest.Config{Host: apiserver.URL}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = New(Options{Upstream: up, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		server.CloseClientConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error("Run:", err)
		}
		server.Close()
		up.Close()
		apiserver.CloseClientConnections()
		apiserver.Close()
	})
	return g, server.URL
}

// podsOf returns the gateway's own resource of Pods, once it is watched.
func podsOf(t testing.TB, g *Gateway, url string) *watchcache.Resource {
	t.Helper()
	resp, err := http.Get(url + "/api/v1/pods?resourceVersion=0")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	return g.reads.cache.Watched(pods)
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("there never was " + what)
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
