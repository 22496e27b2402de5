// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// pod returns a Pod; labels are pairs.
func pod(namespace, name string, rv uint64, labels ...string) *kube.Object {
	m := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	l, _ := json.Marshal(m)
	o, err := kube.ScanObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","labels":%s},"status":{"phase":"Running"}}`, name, namespace, rv, l))
	if err != nil {
		panic(err)
	}
	return o
}

// A bench is a cache that holds Pods, without a reflector behind it: the test
// writes the timeline.
type bench struct {
	t      *testing.T
	cache  *cache
	res    *resource
	server *httptest.Server
	missed chan string // requests that were not served from the cache
	denied map[string]bool
}

func newBench(t *testing.T, list *kube.List) *bench {
	t.Helper()
	b := &bench{t: t, missed: make(chan string, 100)}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			var review authorizationv1.SelfSubjectAccessReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			attributes := review.Spec.ResourceAttributes
			review.Status.Allowed = attributes.Resource == "pods" && !b.denied[attributes.Verb]
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(review)
			return
		}
		http.Error(w, "no upstream here", http.StatusInternalServerError)
	}))
	t.Cleanup(upstream.Close)
	up, err := NewUpstream(&rest.Config{Host: upstream.URL}, UpstreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.cache = newCache(up, time.Hour, slog.New(slog.DiscardHandler))
	b.res = newResource(up, pods, metav1.APIResource{Name: "pods", Namespaced: true}, b.cache.log, b.cache.background)
	b.res.cancel = func() {}
	b.cache.watched[pods] = b.res
	b.res.timeline.Reset(list)
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !b.cache.serve(w, r) {
			b.missed <- r.URL.RawQuery
			http.Error(w, "passed through", http.StatusTeapot)
		}
	}))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = b.cache.run(ctx) }()
	t.Cleanup(func() { b.server.CloseClientConnections(); b.server.Close(); stop(); <-done; up.Close() })
	return b
}

func podList(rv uint64, items ...*kube.Object) *kube.List {
	return &kube.List{Kind: "PodList", APIVersion: "v1", Typed: true, RV: rv, Items: items}
}

func (b *bench) get(path string) (int, string) {
	b.t.Helper()
	resp, err := http.Get(b.server.URL + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (b *bench) apply(typ kube.EventType, o *kube.Object) {
	b.t.Helper()
	err := b.res.timeline.Apply(kube.Frame{Type: typ, Object: o, Text: `{"type":"` + string(typ) + `","object":` + o.JSON + `}`})
	if err != nil {
		b.t.Fatal(err)
	}
	b.res.timeline.Flush()
}

// names are the items of a list in short, with its metadata.
func names(t *testing.T, body string) (out []string, meta metav1.ListMeta) {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, o := range list.Items {
		out = append(out, o.Namespace+"/"+o.Name+"@"+o.ResourceVersion)
	}
	return out, list.ListMeta
}

func TestListVersions(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5)))
	b.apply(kube.Modified, pod("d", "a", 12))
	b.apply(kube.Added, pod("d", "b", 14))
	for _, test := range []struct {
		query string
		rv    string // "" is passed through
		want  []string
	}{
		{"", "", nil},
		{"resourceVersion=0", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=0&limit=1", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=0&resourceVersionMatch=NotOlderThan", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=11", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=3", "14", []string{"d/a@12", "d/b@14"}},
		{"resourceVersion=15", "", nil},
		{"resourceVersion=12&resourceVersionMatch=Exact", "12", []string{"d/a@12"}},
		{"resourceVersion=11&resourceVersionMatch=Exact", "11", []string{"d/a@5"}},
		{"resourceVersion=10&limit=5", "10", []string{"d/a@5"}},
		{"resourceVersion=9&resourceVersionMatch=Exact", "", nil},
		{"resourceVersion=15&resourceVersionMatch=Exact", "", nil},
		{"continue=garbage", "", nil},
		{"continue=" + encodeContinue(3, "d/a", ""), "", nil},
	} {
		code, body := b.get("/api/v1/pods?" + test.query)
		if test.rv == "" {
			if code != http.StatusTeapot {
				t.Errorf("%s: served with %d %s", test.query, code, body)
			}
			continue
		}
		got, meta := names(t, body)
		if diff := cmp.Diff(test.want, got); code != 200 || diff != "" || meta.ResourceVersion != test.rv {
			t.Errorf("%s: %d at %s (-want +got)\n%s", test.query, code, meta.ResourceVersion, diff)
		}
	}
}

// TestPages walks through lists by pages of every size, while the timeline
// moves on: together they are the list at the RV of the first.
func TestPages(t *testing.T) {
	var all []*kube.Object
	for i := range uint64(23) {
		color := []string{"red", "blue"}[i%2]
		all = append(all, pod([]string{"a", "a-b", "b"}[i%3], fmt.Sprintf("p%02d", i), i+1, "color", color))
	}
	b := newBench(t, podList(100, all...))
	next := uint64(100)
	for _, scope := range []string{"/api/v1/pods", "/api/v1/namespaces/a/pods"} {
		for _, selector := range []string{"", "&labelSelector=color%3Dred"} {
			rv := b.res.timeline.View().RV
			_, body := b.get(fmt.Sprintf("%s?resourceVersion=%d&resourceVersionMatch=Exact%s", scope, rv, selector))
			want, _ := names(t, body)
			for limit := 1; limit <= 24; limit++ {
				var got []string
				query := fmt.Sprintf("resourceVersion=%d&resourceVersionMatch=Exact", rv)
				for {
					code, body := b.get(fmt.Sprintf("%s?%s&limit=%d%s", scope, query, limit, selector))
					if code != 200 {
						t.Fatalf("%s: %d %s", query, code, body)
					}
					page, meta := names(t, body)
					got = append(got, page...)
					if meta.ResourceVersion != fmt.Sprint(rv) {
						t.Fatalf("page at %s, want %d", meta.ResourceVersion, rv)
					}
					if (meta.RemainingItemCount != nil) != (meta.Continue != "" && selector == "") {
						t.Errorf("remainingItemCount %v, continue %q, selector %q", meta.RemainingItemCount, meta.Continue, selector)
					}
					if meta.RemainingItemCount != nil && int(*meta.RemainingItemCount) != len(want)-len(got) {
						t.Errorf("%d remain, said to be %d", len(want)-len(got), *meta.RemainingItemCount)
					}
					if meta.Continue == "" {
						break
					}
					query = "continue=" + meta.Continue
					next++
					b.apply(kube.Modified, pod("a", "p00", next, "color", "red"))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s%s limit %d (-want +got)\n%s", scope, selector, limit, diff)
				}
			}
		}
	}
}

func TestGet(t *testing.T) {
	o := pod("d", "a", 5)
	b := newBench(t, podList(10, o))
	if code, body := b.get("/api/v1/namespaces/d/pods/a?resourceVersion=0"); code != 200 || body != o.JSON+"\n" {
		t.Errorf("%d %s", code, body)
	}
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"x\" not found","reason":"NotFound","details":{"name":"x","kind":"pods"},"code":404}` + "\n"
	if code, body := b.get("/api/v1/namespaces/d/pods/x?resourceVersion=10"); code != 404 || body != want {
		t.Errorf("%d %s", code, body)
	}
	for _, path := range []string{"/api/v1/namespaces/d/pods/a", "/api/v1/namespaces/d/pods/a?resourceVersion=11", "/api/v1/pods/a?resourceVersion=0", "/api/v1/namespaces/d/pods/a?resourceVersion=x"} {
		if code, body := b.get(path); code != http.StatusTeapot {
			t.Errorf("%s: served with %d %s", path, code, body)
		}
	}
}

// A watch is an open watch; its lines come over the channel, which is closed
// at the end of the stream.
func (b *bench) watch(query string) (<-chan string, func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+"/api/v1/pods?watch=1&"+query, nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		b.t.Fatalf("watch %s: %s", query, resp.Status)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines, cancel
}

// brief is a frame in short.
func brief(t *testing.T, line string) string {
	t.Helper()
	var f struct {
		Type   string
		Object metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	s := f.Type + " " + f.Object.Name + "@" + f.Object.ResourceVersion
	if f.Object.Annotations["k8s.io/initial-events-end"] == "true" {
		s += " end"
	}
	return s
}

func expect(t *testing.T, lines <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("the stream ended before %q", w)
			}
			if got := brief(t, line); got != w {
				t.Fatalf("got %q, want %q", got, w)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing, want %q", w)
		}
	}
}

func expectEnd(t *testing.T, lines <-chan string) {
	t.Helper()
	select {
	case line, ok := <-lines:
		if ok {
			t.Fatalf("got %q, want the end", line)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the stream does not end")
	}
}

func TestWatch(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "b", 4), pod("d", "a", 5)))
	b.apply(kube.Modified, pod("d", "a", 12))
	streaming, stop1 := b.watch("resourceVersion=0&allowWatchBookmarks=true")
	defer stop1()
	expect(t, streaming, "ADDED a@12", "ADDED b@4", "BOOKMARK @12 end")
	plain, stop2 := b.watch("resourceVersion=0")
	defer stop2()
	expect(t, plain, "ADDED a@12", "ADDED b@4")
	resumed, stop3 := b.watch("resourceVersion=10")
	defer stop3()
	expect(t, resumed, "MODIFIED a@12")
	quiet, stop4 := b.watch("resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	defer stop4()
	future, stop5 := b.watch("resourceVersion=13")
	defer stop5()
	b.apply(kube.Added, pod("d", "c", 13))
	b.apply(kube.Deleted, pod("d", "b", 14))
	expect(t, streaming, "ADDED c@13", "DELETED b@14")
	expect(t, plain, "ADDED c@13", "DELETED b@14")
	expect(t, resumed, "ADDED c@13", "DELETED b@14")
	expect(t, quiet, "ADDED c@13", "DELETED b@14")
	expect(t, future, "DELETED b@14")

	b.get("/api/v1/pods?watch=1&resourceVersion=9&timeoutSeconds=3600")
	if q := <-b.missed; !strings.Contains(q, "timeoutSeconds=10") {
		t.Errorf("an RV older than the window is passed through with %s", q)
	}
	b.res.timeline.Close()
	expectEnd(t, streaming)
}

func TestWatchSelector(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5, "color", "red"), pod("d", "b", 6, "color", "blue")))
	red, stop := b.watch("resourceVersion=0&allowWatchBookmarks=true&labelSelector=color%3Dred")
	defer stop()
	expect(t, red, "ADDED a@5", "BOOKMARK @10 end")
	b.apply(kube.Modified, pod("d", "a", 11, "color", "blue")) // leaves: the state before, at the RV that ended it
	b.apply(kube.Modified, pod("d", "b", 12, "color", "red"))  // comes in
	b.apply(kube.Modified, pod("d", "a", 13, "color", "blue")) // nothing to us
	b.apply(kube.Modified, pod("d", "b", 14, "color", "red"))
	b.apply(kube.Deleted, pod("d", "a", 15, "color", "blue")) // nothing to us
	b.apply(kube.Deleted, pod("d", "b", 16, "color", "red"))
	line := <-red
	if got, want := line, `{"type":"DELETED","object":`+pod("d", "a", 11, "color", "red").JSON+`}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	expect(t, red, "ADDED b@12", "MODIFIED b@14", "DELETED b@16")
}

func TestWatchEndsInTime(t *testing.T) {
	b := newBench(t, podList(10))
	b.apply(kube.Added, pod("d", "a", 11))
	lines, _ := b.watch("resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=3")
	start := time.Now()
	expect(t, lines, "ADDED a@11", "BOOKMARK @11")
	expectEnd(t, lines)
	if took := time.Since(start); took < time.Second {
		t.Errorf("ended after %v", took)
	}
}

func TestWatchExpires(t *testing.T) {
	b := newBench(t, podList(10))
	lines, stop := b.watch("resourceVersion=10")
	defer stop()
	b.res.timeline.Reset(podList(5))
	line := <-lines
	if !strings.HasPrefix(line, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 10 (5)","reason":"Expired","code":410}}`) {
		t.Errorf("got %s", line)
	}
	expectEnd(t, lines)
}

func TestDrain(t *testing.T) {
	b := newBench(t, podList(10))
	b.apply(kube.Added, pod("d", "a", 11))
	asked, _ := b.watch("resourceVersion=10&allowWatchBookmarks=true")
	plain, _ := b.watch("resourceVersion=10")
	expect(t, asked, "ADDED a@11")
	expect(t, plain, "ADDED a@11")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	b.cache.drain(ctx)
	expect(t, asked, "BOOKMARK @11")
	expectEnd(t, asked)
	expectEnd(t, plain)
	if code, _ := b.get("/api/v1/pods?watch=1&resourceVersion=10"); code != http.StatusTeapot {
		t.Errorf("a new watch is served while draining: %d", code)
	}
}

func TestIdleResourceIsStopped(t *testing.T) {
	b := newBench(t, podList(10))
	stopped := false
	b.res.cancel = func() { stopped = true }
	lines, stop := b.watch("resourceVersion=0")
	b.cache.stopIdle(0)
	if stopped {
		t.Fatal("stopped under an open watch")
	}
	stop()
	for range lines {
	}
	for deadline := time.Now().Add(10 * time.Second); !stopped && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		b.cache.stopIdle(0)
	}
	if !stopped {
		t.Error("not stopped")
	}
}

func TestContinueTokens(t *testing.T) {
	token := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, test := range []struct {
		token, namespace string
		want             page
		ok               bool
	}{
		{encodeContinue(232, "cm2", ""), "", page{232, "cm2\x00"}, true},
		{encodeContinue(232, "ns/cm2", "ns"), "ns", page{232, "ns/cm2\x00"}, true},
		{token(`{"v":"meta.k8s.io/v1","rv":232,"start":"/cm2\u0000"}`), "ns", page{232, "ns/cm2\x00"}, true},
		{token(`{"v":"meta.k8s.io/v1","rv":232,"start":"ns/cm2\u0000"}`), "", page{232, "ns/cm2\x00"}, true},
		{token(`{"v":"meta.k8s.io/v1","rv":-1,"start":"cm2\u0000"}`), "", page{}, false},
		{token(`{"v":"meta.k8s.io/v1","rv":0,"start":"cm2\u0000"}`), "", page{}, false},
		{token(`{"v":"meta.k8s.io/v1","rv":5,"start":"../x\u0000"}`), "ns", page{}, false},
		{token(`{"v":"meta.k8s.io/v1","rv":5,"start":""}`), "", page{}, false},
		{token(`{"v":"v2","rv":5,"start":"x"}`), "", page{}, false},
		{token(`{`), "", page{}, false},
		{"!", "", page{}, false},
	} {
		got, err := decodeContinue(test.token, test.namespace)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("%s in %q: %+v, %v", test.token, test.namespace, got, err)
		}
	}
}

func TestTransition(t *testing.T) {
	red := func(o *kube.Object) bool { return o.Labels.Get("color") == "red" }
	r5, b5, r9, b9 := pod("d", "a", 5, "color", "red"), pod("d", "a", 5, "color", "blue"), pod("d", "a", 9, "color", "red"), pod("d", "a", 9, "color", "blue")
	for _, test := range []struct {
		e    timeline.Event
		want string
	}{
		{timeline.Event{Type: kube.Added, RV: 9, Object: r9}, "ADDED " + r9.JSON},
		{timeline.Event{Type: kube.Added, RV: 9, Object: b9}, ""},
		{timeline.Event{Type: kube.Modified, RV: 9, Object: r9, Prev: r5}, "MODIFIED " + r9.JSON},
		{timeline.Event{Type: kube.Modified, RV: 9, Object: r9, Prev: b5}, "ADDED " + r9.JSON},
		{timeline.Event{Type: kube.Modified, RV: 9, Object: b9, Prev: r5}, "DELETED " + r9.JSON},
		{timeline.Event{Type: kube.Modified, RV: 9, Object: b9, Prev: b5}, ""},
		{timeline.Event{Type: kube.Deleted, RV: 9, Object: r9, Prev: r5}, "DELETED " + r9.JSON},
		{timeline.Event{Type: kube.Deleted, RV: 9, Object: b9, Prev: b5}, ""},
	} {
		got := ""
		if typ, object, ok := transition(&test.e, red); ok {
			got = string(typ) + " " + object
		}
		if got != test.want {
			t.Errorf("%s of %s: %s", test.e.Type, test.e.Object.JSON, got)
		}
	}
}

// TestProofsAreShared has readers ask while a proof is on its way: they share
// the one after it, since the first may have begun before their question.
func TestProofsAreShared(t *testing.T) {
	begun := make(chan chan uint64)
	p := proof{
		check: func(context.Context) (uint64, error) {
			answer := make(chan uint64)
			begun <- answer
			return <-answer, nil
		},
		start: func(f func(context.Context)) bool { go f(t.Context()); return true },
	}
	got := make(chan uint64, 10)
	ask := func() {
		rv, err := p.get(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- rv
	}
	go ask()
	first := <-begun
	for range 5 {
		go ask()
	}
	for waiting := false; !waiting; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		waiting = p.next != nil
		p.mu.Unlock()
	}
	first <- 1
	if rv := <-got; rv != 1 {
		t.Errorf("the first reader got %d", rv)
	}
	second := <-begun
	time.Sleep(20 * time.Millisecond) // let the stragglers ask
	second <- 2
	var rvs []uint64
	for len(rvs) < 5 {
		select {
		case rv := <-got:
			rvs = append(rvs, rv)
		case third := <-begun: // for those that asked after the second began
			third <- 3
		}
	}
	if slices.Contains(rvs, 1) {
		t.Errorf("a proof that began before the question: %v", rvs)
	}
}

// TestAccess: what the API server would refuse to the gateway's identity is
// passed through, whatever is held (T8).
func TestAccess(t *testing.T) {
	for _, verb := range []string{"get", "list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			b := newBench(t, podList(10, pod("d", "a", 5)))
			b.denied = map[string]bool{verb: true}
			for path, needs := range map[string]string{
				"/api/v1/namespaces/d/pods/a?resourceVersion=0":                       "get",
				"/api/v1/pods?resourceVersion=0":                                      "list",
				"/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=-1":            "watch",
				"/api/v1/watch/namespaces/d/pods?resourceVersion=0&timeoutSeconds=-1": "watch",
			} {
				want := 200
				if needs == verb {
					want = http.StatusTeapot
				}
				if code, body := b.get(path); code != want {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
		})
	}
}

func TestGzip(t *testing.T) {
	var big []*kube.Object
	for i := range uint64(1000) {
		big = append(big, pod("d", fmt.Sprintf("p%03d", i), i+1, "some-label", strings.Repeat("x", 60)))
	}
	b := newBench(t, podList(2000, big...))
	_, plain := b.get("/api/v1/pods?resourceVersion=0")
	for _, test := range []struct {
		accept, query string
		want          bool
	}{
		{"gzip", "", true},
		{"deflate, gzip", "", true},
		{"gzip;q=1.0", "", false},
		{"", "", false},
		{"gzip", "&limit=5&resourceVersionMatch=NotOlderThan", true}, // RV 0: no limit
		{"gzip", "&labelSelector=none", false},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+"/api/v1/pods?resourceVersion=0"+test.query, nil)
		req.Header.Set("Accept-Encoding", test.accept)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Content-Encoding") == "gzip" && resp.Header.Get("Vary") == "Accept-Encoding"; got != test.want {
			t.Errorf("%q %s: gzip is %v", test.accept, test.query, got)
		}
		if test.want {
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(r); err != nil || string(text) != plain {
				t.Errorf("%q: %d bytes unpacked, want %d: %v", test.accept, len(text), len(plain), err)
			}
		}
	}
}

// TestOddVersions are cases in which the API server compares the text of an RV
// or gives an error that depends on more than one parameter.
func TestOddVersions(t *testing.T) {
	b := newBench(t, podList(10, pod("d", "a", 5), pod("d", "b", 6)))
	token := encodeContinue(10, "d/a", "")
	for _, query := range []string{
		"resourceVersion=00", "watch=1&resourceVersion=00", "resourceVersion=010",
		"continue=" + token + "&resourceVersion=5", "continue=" + token + "&resourceVersion=0&limit=1",
		"resourceVersion=10&limit=1&fieldSelector=metadata.namespace%3Dd",
		"continue=" + token + "&fieldSelector=metadata.namespace%3Dd",
	} {
		if code, body := b.get("/api/v1/pods?" + query); code != http.StatusTeapot {
			t.Errorf("%s: served with %d %s", query, code, body)
		}
	}
	if code, body := b.get("/api/v1/watch/pods/a?resourceVersion=0&timeoutSeconds=1"); code != http.StatusTeapot {
		t.Errorf("a namespaced object without its namespace: %d %s", code, body)
	}
	for _, timeout := range []string{"-1", "9223372037"} {
		if code, body := b.get("/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=" + timeout); code != 200 || body != "" {
			t.Errorf("timeoutSeconds=%s: %d %q", timeout, code, body)
		}
	}
	if _, body := b.get("/api/v1/pods?resourceVersion=0&w%61tch=true&timeoutSeconds=1"); !strings.HasPrefix(body, `{"type":"ADDED"`) {
		t.Errorf("an escaped parameter name: %s", body)
	}
}
