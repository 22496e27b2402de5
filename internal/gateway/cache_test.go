// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// pod returns a Pod; labels are pairs.
func pod(namespace, name string, rv uint64, labels ...string) *scan.Object {
	m := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	l, _ := json.Marshal(m)
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","labels":%s},"spec":{"containers":null},"status":{"phase":"Running"}}`, name, namespace, rv, l))
	if err != nil {
		panic(err)
	}
	return o
}

// A bench is a cache that holds Pods, without a reflector behind it: the test
// writes the timeline.
type bench struct {
	t        *testing.T
	cache    *cache
	res      *resource
	server   *httptest.Server
	missed   chan string // requests that were not served from the cache
	requests requestTracker
	metrics  *requestMetrics
	denied   map[string]bool
	mute     atomic.Bool // the API server does not say who may do what
}

func newBench(t *testing.T, list *scan.List) *bench {
	t.Helper()
	b := &bench{t: t, missed: make(chan string, 100)}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") && !b.mute.Load() {
			var review authorizationv1.SelfSubjectAccessReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			attributes := review.Spec.ResourceAttributes
			review.Status.Allowed = attributes.Resource == "pods" && !b.denied[attributes.Verb]
			if may, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok { // a verb and a namespace
				review.Status.Allowed = may == attributes.Verb+" "+cmp.Or(attributes.Namespace, "*")
			}
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
	b.res = newResource(up, pods, metav1.APIResource{Name: "pods", Namespaced: true}, b.cache.log, b.cache.begin, timeline.Options{})
	b.res.cancel = func() {}
	b.res.encoder.Cache = b.cache.encodings
	b.cache.watched[pods] = b.res
	b.res.timeline.Reset(list)
	if b.metrics, err = newRequestMetrics(nil); err != nil {
		t.Fatal(err)
	}
	b.requests.init()
	b.server = httptest.NewServer(http.HandlerFunc(b.serve))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = b.cache.run(ctx) }()
	t.Cleanup(func() {
		b.server.CloseClientConnections()
		b.server.Close()
		b.requests.cut()
		<-b.requests.idle()
		stop()
		<-done
		up.Close()
	})
	return b
}

// serve is what a Gateway does.
func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, metrics: b.metrics, requests: &b.requests, request: r}
	if isAt(r.URL.Path) {
		b.at(rec, r)
	} else if !b.cache.serve(rec, r) {
		b.missed <- r.URL.RawQuery
		http.Error(w, "passed through", http.StatusTeapot)
	}
	if rec.stream != nil {
		rec.stream.serve(rec)
	}
}

func podList(rv uint64, items ...*scan.Object) *scan.List {
	return &scan.List{Kind: "PodList", ItemKind: "Pod", APIVersion: "v1", Typed: true, RV: rv, Items: items}
}

// get sends a GET; headers are pairs.
func (b *bench) get(path string, headers ...string) (int, string) {
	b.t.Helper()
	resp := b.open(b.t.Context(), path, headers...)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// open sends a GET and returns the response, whose body is yet to be read.
func (b *bench) open(ctx context.Context, path string, headers ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

func (b *bench) apply(typ kube.EventType, o *scan.Object) {
	b.t.Helper()
	err := b.res.timeline.Apply(scan.Frame{Type: typ, Object: o})
	if err != nil {
		b.t.Fatal(err)
	}
	b.res.timeline.Flush()
}

// names are the items of a list in short, with its metadata.
// TestPages walks through lists by pages of every size, while the timeline
// moves on: together they are the list at the RV of the first.
// A watch is an open watch; its lines come over the channel, which is closed
// at the end of the stream.
// brief is a frame in short.
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
	for deadline := time.Now().Add(time.Minute); !stopped && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		b.cache.stopIdle(0)
	}
	if !stopped {
		t.Error("not stopped")
	}
}

// TestProofsAreShared has readers ask while a proof is on its way: they share
// the one after it, since the first may have begun before their question.
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

// TestOddVersions are cases in which the API server compares the text of an RV
// or gives an error that depends on more than one parameter.
