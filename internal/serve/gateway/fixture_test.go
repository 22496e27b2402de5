// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
)

// pods is the resource of the tests.
var pods = pasttest.Pods

func pod(namespace, name string, rv uint64, labels ...string) *scan.Object {
	return pasttest.Pod(namespace, name, rv, labels...)
}

func podList(rv uint64, items ...*scan.Object) *scan.List { return pasttest.List(rv, items...) }

// A bench serves Pods from a timeline without a reflector: the test writes it.
type bench struct {
	t       *testing.T
	reads   *reads
	res     *watchcache.Resource
	server  *httptest.Server
	missed  chan string // requests that were not served from the cache
	metrics *requestMetrics
	denied  map[string]bool
	mute    atomic.Bool // the API server does not answer access reviews
}

func newBench(t *testing.T, list *scan.List) *bench {
	t.Helper()
	b := &bench{t: t, missed: make(chan string, 100)}
	apiserver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(review)
			return
		}
		http.Error(w, "no upstream here", http.StatusInternalServerError)
	}))
	t.Cleanup(apiserver.Close)
	up, err := upstream.New(&rest.Config{Host: apiserver.URL}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.reads, _ = newReads(Options{Upstream: up, IdleTimeout: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	b.res = b.reads.cache.Insert(pods, metav1.APIResource{Name: "pods", Namespaced: true})
	b.res.Timeline.Reset(list)
	if b.metrics, err = newRequestMetrics(nil); err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewServer(http.HandlerFunc(b.serve))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.reads.cache.Run(ctx) }()
	t.Cleanup(func() {
		b.server.CloseClientConnections()
		b.server.Close()
		b.reads.tracker.Cut()
		<-b.reads.tracker.Idle()
		stop()
		<-done
		b.reads.background.Stop()
		up.Close()
	})
	return b
}

// remember gives the bench a recorded past.
func (b *bench) remember(h *pasttest.Record) {
	b.reads.past = past.New(h, b.reads.background, b.reads.log)
	b.reads.access = access.NewPast(b.reads.up, b.reads.past, b.reads.background)
}

// serve answers a request as a Gateway does.
func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	rec := &responseRecorder{ResponseWriter: w, metrics: b.metrics, request: r}
	if request.IsAt(r.URL.Path) {
		when, inner, err := request.CutAt(r, time.Now())
		if err != nil {
			b.t.Error(err)
			return
		}
		rec.request = inner
		b.reads.serveAt(rec, inner, when)
	} else if declined := b.reads.serve(rec, r); declined != nil {
		if declined.short {
			r = shorten(r, shortWatch)
		}
		b.missed <- r.URL.RawQuery
		http.Error(w, "passed through", http.StatusTeapot)
	}
	if rec.stream != nil {
		b.reads.tracker.Serve(rec, rec.request, rec.stream)
	}
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
	err := b.res.Timeline.Apply(scan.Frame{Type: typ, Object: o})
	if err != nil {
		b.t.Fatal(err)
	}
	b.res.Timeline.Flush()
}

// TestAccess: a read that the gateway's identity may not do is passed through, even if
// the objects are cached (T8).
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
