// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/request"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
	"github.com/watchkeeper/watchkeeper/internal/watchcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var pods = kube.Resource{Version: "v1", Name: "pods"}

// A fakeAPI is an API server that has Pods.
type fakeAPI struct {
	server *httptest.Server

	mu      sync.Mutex // guards what follows
	rv      uint64
	pods    map[kube.Key]*scan.Object
	frames  []scan.Frame
	lost    uint64 // history up to here is gone
	uid     string // of kube-system; "" is forbidden
	refuse  int    // the code for everything of Pods; 0 is none
	away    bool   // all is 503
	others  string // further resources in discovery, names of the core group
	edition int    // of the definition of gadgets; 0 is none
	changed chan struct{}

	lists, open, mostOpen int // lists of more than one item; watches of Pods
}

func newFakeAPI(t testing.TB) *fakeAPI {
	f := &fakeAPI{rv: 100, pods: map[kube.Key]*scan.Object{}, uid: "cluster-1", changed: make(chan struct{})}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
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
	close(f.changed)
	f.changed = make(chan struct{})
}

// write creates or changes a Pod, and returns the RV.
func (f *fakeAPI) write(name, text string) (rv uint64) {
	f.change(func() {
		f.rv += 2
		rv = f.rv
		o, typ := pod(name, rv, text), kube.Added
		if f.pods[o.Key] != nil {
			typ = kube.Modified
		}
		f.pods[o.Key] = o
		f.frames = append(f.frames, scan.Frame{Type: typ, Object: o})
	})
	return rv
}

// remove deletes Pods, at one RV.
func (f *fakeAPI) remove(names ...string) (rv uint64) {
	f.change(func() {
		f.rv += 2
		rv = f.rv
		for _, name := range names {
			key := kube.MakeKey("ns", name)
			f.frames = append(f.frames, scan.Frame{Type: kube.Deleted, Object: f.pods[key].At(rv)})
			delete(f.pods, key)
		}
	})
	return rv
}

// outage has things happen while nobody is there to tell of them.
func (f *fakeAPI) outage(during func()) {
	f.change(func() { f.refuse = http.StatusServiceUnavailable })
	f.server.CloseClientConnections()
	during()
	f.change(func() { f.refuse = 0 })
}

// forget has the past be gone, as after a compaction.
func (f *fakeAPI) forget() { f.change(func() { f.lost, f.frames = f.rv, nil }) }

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	f.mu.Lock()
	uid, refuse, others, away := f.uid, f.refuse, strings.Fields(f.others), f.away
	f.mu.Unlock()
	if away {
		f.fail(w, http.StatusServiceUnavailable, "away")
		return
	}
	switch r.URL.Path {
	case "/api/v1/namespaces/kube-system":
		if uid == "" {
			f.fail(w, http.StatusForbidden, `namespaces "kube-system" is forbidden`)
			return
		}
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid)
	case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets":
		f.mu.Lock()
		edition := f.edition
		f.mu.Unlock()
		if edition == 0 {
			f.fail(w, http.StatusNotFound, "not found")
			return
		}
		fmt.Fprintf(w, `{"metadata":{"name":"gadgets","uid":"crd","generation":%d}}`, edition)
	case "/api":
		io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case "/api/v1":
		entry := func(name, kind string) string {
			return fmt.Sprintf(`{"name":%q,"namespaced":true,"kind":%q,"verbs":["get","list","watch"]}`, name, kind)
		}
		all := []string{entry("pods", "Pod"), `{"name":"pods/log","namespaced":true,"kind":"Pod","verbs":["get"]}`}
		for _, name := range others {
			all = append(all, entry(name, "Pod"))
		}
		fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[%s]}`, strings.Join(all, ","))
	default:
		q := r.URL.Query()
		switch {
		case refuse != 0:
			f.fail(w, refuse, "no")
		case q.Has("sendInitialEvents"):
			f.fail(w, http.StatusBadRequest, "no streaming lists")
		case q.Has("watch"):
			f.watch(w, r)
		case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/ns/"):
			f.get(w, path.Base(r.URL.Path))
		default:
			f.list(w, q.Get("limit"))
		}
	}
}

func (f *fakeAPI) fail(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":%d}`, message, code)
}

func (f *fakeAPI) get(w http.ResponseWriter, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.pods[kube.MakeKey("ns", name)]; o != nil {
		io.WriteString(w, o.JSON)
		return
	}
	f.fail(w, http.StatusNotFound, "not found")
}

func (f *fakeAPI) list(w io.Writer, limit string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var items []string
	for _, key := range slices.Sorted(maps.Keys(f.pods)) {
		items = append(items, f.pods[key].JSON)
	}
	if limit == "1" {
		items = items[:min(1, len(items))]
	} else {
		f.lists++
	}
	fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, f.rv, strings.Join(items, ","))
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request) {
	rv, _ := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	f.mu.Lock()
	if rv < f.lost {
		f.mu.Unlock()
		f.fail(w, http.StatusGone, "too old resource version")
		return
	}
	next := slices.IndexFunc(f.frames, func(e scan.Frame) bool { return e.Object.RV > rv })
	if next < 0 {
		next = len(f.frames)
	}
	f.open++
	f.mostOpen = max(f.mostOpen, f.open)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open--
	}()
	for {
		f.mu.Lock()
		if f.refuse != 0 {
			f.mu.Unlock()
			return
		}
		for ; next < len(f.frames); next++ {
			fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", f.frames[next].Type, f.frames[next].Object.JSON)
		}
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`+"\n", f.rv)
		changed := f.changed
		f.mu.Unlock()
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// counts returns the lists since the last call, and the most watches at a time.
func (f *fakeAPI) counts() (lists, watches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.lists = 0 }()
	return f.lists, f.mostOpen
}

// A rig is a recorder in front of the fake API server, that runs.
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
	up, err := upstream.New(&rest.Config{Host: f.server.URL}, upstream.Options{})
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
	r.retryRefused, r.rediscover, r.trimEvery = 5*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
	r.patience = 10 * time.Second
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
		Await: r.Ready, Patience: r.patience, IdleTimeout: 20 * time.Millisecond,
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

// served has Pods read from the cache, which has them from a list.
func (g *rig) served() *watchcache.Resource {
	g.t.Helper()
	res := g.cache.Acquire(g.t.Context(), pods)
	if res == nil {
		g.t.Fatal("Pods are not watched")
	}
	until(g.t, "a state of Pods", func() bool { return res.StateFor(g.t.Context(), request.List).Readable })
	if watchcache.Lists(res.Status()) == 0 {
		g.t.Error("it was served what is recorded")
	}
	return res
}

// idle ends the reading of Pods.
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
			t.Fatal("there never was " + what)
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

// events returns what a stream has, in short, gaps included.
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
		out = append(out, fmt.Sprintf("gap %d-%d", g.From, g.To))
	}
	return strings.Join(out, ", ")
}

// state returns the names and texts of what a stream has at its head.
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
