// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var pods = kube.Resource{Version: "v1", Name: "pods"}

// A fakeAPI is an API server of Pods, and of gadgets and things, custom resources with the same
// objects. Another one can replace it at the same address.
type fakeAPI struct {
	mu      sync.Mutex // guards what follows
	network *fakeapi.Network
	api     *fakeapi.Server
	uid     string // of kube-system; "" answers 403
	refuse  int    // the code of all responses for Pods; 0 serves them
	down    bool   // all responses are 503
	listed  bool   // lists are answered, and watches with 504
	hidden  bool   // discovery is 503
	gadgets int    // the generation of the definition of gadgets, 0 if there is none
	served  bool   // discovery has gadgets
	defines bool   // discovery has CustomResourceDefinitions; they are the Pods
	broken  string // the version of things whose discovery is 503
	things  string // the preferred one of the versions v1 and v1beta1 of things, "" if there are none
	// identify is called before each answer for kube-system, if it is set.
	identify func()

	lists, open, maxOpen int // lists of more than one item; watches
}

func newFakeAPI(t testing.TB) *fakeAPI {
	f := &fakeAPI{uid: "cluster-1"}
	f.restore(100)
	f.network = fakeapi.NewNetwork(f)
	t.Cleanup(func() { f.network.Close() })
	return f
}

// dial connects to the API server.
func (f *fakeAPI) dial(ctx context.Context, network, address string) (net.Conn, error) {
	f.mu.Lock()
	n := f.network
	f.mu.Unlock()
	return n.Dial(ctx, network, address)
}

// disconnect breaks all connections.
func (f *fakeAPI) disconnect() {
	f.mu.Lock()
	before := f.network
	f.network = fakeapi.NewNetwork(f)
	f.mu.Unlock()
	before.Close()
}

// restore replaces the state of the API server by an empty one at an RV.
func (f *fakeAPI) restore(rv uint64) {
	f.api = fakeapi.New(fakeapi.Options{FirstRV: rv, Step: 2, EagerBookmarks: true, NoWatchList: true})
}

func pod(name string, rv uint64, text string) *scan.Object {
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns","uid":"u-%s","resourceVersion":"%d"},"spec":{"text":%q}}`,
		name, name, rv, text))
	if err != nil {
		panic(err)
	}
	return o
}

func (f *fakeAPI) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// write creates or changes a Pod, and returns the RV.
func (f *fakeAPI) write(name, text string) (rv uint64) {
	return f.api.Put("pods", pod(name, 1, text).JSON)
}

// remove deletes Pods, at one RV.
func (f *fakeAPI) remove(names ...string) (rv uint64) {
	var keys []string
	for _, name := range names {
		keys = append(keys, "ns/"+name)
	}
	return f.api.Delete("pods", keys...)
}

// outage lets the API server change while no client can reach it.
func (f *fakeAPI) outage(during func()) {
	f.change(func() { f.refuse = http.StatusServiceUnavailable })
	f.disconnect()
	during()
	f.change(func() { f.refuse = 0 })
}

// forget compacts the history.
func (f *fakeAPI) forget() { f.api.Compact(f.api.RV()) }

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	api, uid, refuse, down, hidden, gadgets, served, defines, things, broken, identify := f.api, f.uid, f.refuse, f.down, f.hidden, f.gadgets, f.served, f.defines, f.things, f.broken, f.identify
	if f.listed && r.URL.Query().Has("watch") {
		refuse = http.StatusGatewayTimeout
	}
	f.mu.Unlock()
	fail := func(code int) { fakeapi.WriteStatus(w, code, metav1.StatusReason(http.StatusText(code)), "no") }
	q := r.URL.Query()
	switch path := r.URL.Path; {
	case path == "/broken":
		panic(http.ErrAbortHandler)
	case down, broken != "" && path == "/apis/example.com/"+broken, hidden && (path == "/api" || path == "/apis"):
		fail(http.StatusServiceUnavailable)
	case path == "/api/v1/namespaces/kube-system" && uid == "":
		fail(http.StatusForbidden)
	case path == "/api/v1/namespaces/kube-system":
		if identify != nil {
			identify()
		}
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid)
	case path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets" && gadgets == 0:
		fail(http.StatusNotFound)
	case path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets":
		fmt.Fprintf(w, `{"metadata":{"name":"gadgets","uid":"crd","generation":%d}}`, gadgets)
	case path == "/api/v1":
		list := metav1.APIResourceList{GroupVersion: "v1"}
		for _, name := range []string{"pods", "pods/log", "gadgets", defining[0]} {
			if name != "gadgets" && name != defining[0] || name == "gadgets" && served || name == defining[0] && defines {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Namespaced: true, Kind: "Pod", ShortNames: []string{name[:2]}, Verbs: []string{"get", "list", "watch"}})
			}
		}
		json.NewEncoder(w).Encode(list)
	case path == "/apis" && things != "":
		fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"},
			{"groupVersion":"example.com/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"example.com/%s","version":"%[1]s"}}]}`, things)
	case path == "/apis/example.com/v1", path == "/apis/example.com/v1beta1":
		json.NewEncoder(w).Encode(metav1.APIResourceList{GroupVersion: strings.TrimPrefix(path, "/apis/"), APIResources: []metav1.APIResource{{Name: "things", Namespaced: true, Kind: "Thing", Verbs: []string{"list", "watch"}}}})
	case path == "/api", path == "/apis":
		api.ServeHTTP(w, r)
	case refuse != 0:
		fail(refuse)
	default:
		r.URL.Path = strings.NewReplacer("/gadgets", "/pods", "/"+defining[0], "/pods", "/apis/example.com/v1/things", "/api/v1/pods", "/apis/example.com/v1beta1/things", "/api/v1/pods").Replace(path)
		r.Header.Set("Accept", "application/json") // no Tables
		f.mu.Lock()
		if q.Has("watch") && !q.Has("sendInitialEvents") {
			f.open++
			f.maxOpen = max(f.maxOpen, f.open)
			defer f.change(func() { f.open-- })
		} else if !q.Has("watch") && q.Get("limit") != "1" && !strings.Contains(path, "/namespaces/") {
			f.lists++
		}
		f.mu.Unlock()
		api.ServeHTTP(w, r)
	}
}

// counts returns the lists, and the maximum number of open watches, since the last
// call.
func (f *fakeAPI) counts() (lists, watches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.lists = 0 }()
	return f.lists, f.maxOpen
}

// unwatched waits until no watch is open.
func (f *fakeAPI) unwatched(t testing.TB) {
	t.Helper()
	until(t, "the end of all watches", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.open == 0
	})
}

// A rig is a running recorder in front of a fakeAPI.
type rig struct {
	t     testing.TB
	r     *Recorder
	cache *watchcache.Cache
	owner *handOwner
	stop  func()
}

// recorder returns a recorder of Pods.
func (f *fakeAPI) recorder(t testing.TB, fs vfs.FS, patterns ...string) *Recorder {
	t.Helper()
	if patterns == nil {
		patterns = []string{"pods"}
	}
	sel, err := Select(patterns, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New(&rest.Config{Host: "http://apiserver", Dial: f.dial}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	r, err := New(Options{
		Dir: "data", Select: sel, FS: fs, Upstream: up,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.delay = delays{events: 5 * time.Millisecond, head: 5 * time.Millisecond}
	r.retry, r.redial = 5*time.Millisecond, 5*time.Millisecond
	r.retryRefused, r.rediscover, r.defined = 5*time.Millisecond, 10*time.Millisecond, time.Millisecond
	r.trimEvery, r.listenEvery = 10*time.Millisecond, time.Millisecond
	r.diskTimeout = 10 * time.Second
	return r
}

// run runs the recorder, with a cache that owns the upstream watches, until stop is
// called, or the test ends.
func (f *fakeAPI) run(t testing.TB, r *Recorder) *rig {
	t.Helper()
	if err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	background := upstream.NewBackground()
	cache := watchcache.New(watchcache.Options{
		Upstream: r.opts.Upstream, Background: background, Discovery: upstream.NewDiscovery(r.opts.Upstream, background), Logger: r.log,
		Await: r.Ready, DiskTimeout: r.diskTimeout, IdleTimeout: 20 * time.Millisecond,
	})
	owner := &handOwner{cache: cache, hands: map[kube.Resource]*hand{}}
	ctx, cancel := context.WithCancel(context.Background())
	last, stopRecording := context.WithCancel(context.Background())
	var caching, recording sync.WaitGroup
	caching.Go(func() { cache.Run(ctx) })
	recording.Go(func() { r.Run(last, owner) })
	g := &rig{t: t, r: r, cache: cache, owner: owner, stop: sync.OnceFunc(func() {
		cancel()
		caching.Wait()
		background.Stop()
		stopRecording()
		recording.Wait()
	})}
	t.Cleanup(g.stop)
	return g
}

// served acquires Pods from the cache, which has listed them.
func (g *rig) served() *watchcache.Resource {
	g.t.Helper()
	res := g.cache.Acquire(g.t.Context(), pods)
	if res == nil {
		g.t.Fatal("Pods are not watched")
	}
	until(g.t, "a state of Pods", func() bool { return res.StateFor(g.t.Context(), request.List).Readable })
	if watchcache.Lists(res.Status()) == 0 {
		g.t.Error("Pods were served from the record")
	}
	return res
}

// idle releases Pods and waits until their timeline has ended.
func (g *rig) idle(res *watchcache.Resource) {
	g.t.Helper()
	res.Release()
	until(g.t, "the end of the timeline", func() bool { return g.cache.Watched(pods) == nil })
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timeout waiting for " + what)
		}
	}
}

// recorded waits until Pods are recorded up to rv.
func (g *rig) recorded(rv uint64) *history.Stream {
	g.t.Helper()
	var st *history.Stream
	until(g.t, fmt.Sprintf("a record up to %d", rv), func() bool {
		if s := g.r.Store(); s != nil {
			if all := s.Streams(pods); len(all) > 0 {
				st = all[len(all)-1]
				return st.Head().RV >= rv
			}
		}
		return false
	})
	return st
}

// events returns the events and gaps of a stream in short form.
func events(t *testing.T, st *history.Stream) string {
	t.Helper()
	var out []string
	span := st.Span()
	for e, err := range st.Events(t.Context(), span.From.RV, span.To.RV) {
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key.Name(), e.Object.RV)
		if e.Prev != nil {
			text += fmt.Sprintf("<%d", e.Prev.RV)
		}
		if e.Inferred {
			text += "?"
		}
		out = append(out, text)
	}
	for _, g := range st.Gaps() {
		if g.Late() {
			out = append(out, fmt.Sprintf("late at %d", g.From))
		} else {
			out = append(out, fmt.Sprintf("gap %d-%d", g.From, g.To))
		}
	}
	return strings.Join(out, ", ")
}

// state returns the names and texts of the objects at a stream's head.
func state(t *testing.T, st *history.Stream) string {
	t.Helper()
	var out []string
	for o, err := range st.List(t.Context(), st.Head().RV, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		var spec struct{ Spec struct{ Text string } }
		if err := json.Unmarshal([]byte(o.JSON), &spec); err != nil {
			t.Fatal(err)
		}
		out = append(out, o.Key.Name()+"="+spec.Spec.Text)
	}
	return strings.Join(out, " ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// modes are whether Pods are read from the cache while they are recorded.
var modes = map[string]bool{"only recorded": false, "also read": true}

// inBubble runs a test with its own clock (testing/synctest), which stands while a
// goroutine runs: what comes within a time does so on a slow machine too.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}
