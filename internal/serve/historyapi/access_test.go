// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// A guarded is an API server that shows a definition to the gateway only, and notes
// the credentials of each request.
type guarded struct {
	*fakeapi.Server
	mute  atomic.Bool  // access reviews fail
	down  atomic.Bool  // all other requests fail
	code  atomic.Int32 // if not 0, the code of all other answers
	gate  chan bool    // if not nil, /api waits until it is closed
	waits chan bool    // gets a value for each request that waits
	mu    sync.Mutex   // guards the fields below
	asked map[string]string
	about []authorizationv1.ResourceAttributes
}

func newGuarded() *guarded {
	g := &guarded{asked: map[string]string{}}
	g.Server = fakeapi.New(fakeapi.Options{Allow: func(_ *fakeapi.Request, a authorizationv1.ResourceAttributes) bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.about = append(g.about, a)
		return true
	}})
	g.Control(g.control)
	return g
}

func (g *guarded) control(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
	who := r.Header.Get("Authorization")
	if g.gate != nil && r.URL.Path == "/api" {
		select {
		case g.waits <- true:
			<-g.gate
		case <-g.gate: // closed
		}
	}
	note := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked[r.URL.Path] = who
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		if g.mute.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		next(w)
	case strings.Contains(r.URL.Path, "customresourcedefinitions") && who != "Bearer gateway":
		note()
		w.WriteHeader(http.StatusForbidden)
	case g.down.Load():
		panic(http.ErrAbortHandler)
	case g.code.Load() != 0:
		w.WriteHeader(int(g.code.Load()))
	default:
		note()
		next(w)
	}
}

// widgets returns a fixture with a history of custom objects and of Secrets.
func widgets(t *testing.T) (*fixture, *guarded) {
	g := newGuarded()
	f := newFixtureAt(t, g)
	st := f.Stream(kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, 100, 0, pasttest.Thing(t, "default/w", 90, `{kind: Widget, apiVersion: example.com/v1}`))
	f.Event(st, kube.Modified, "default/w", 110, `{kind: Widget, apiVersion: example.com/v1, spec: {size: 1}}`)
	f.Stream(pasttest.Secrets, 100, 0, pasttest.Thing(t, "default/s", 70, `{kind: Secret, apiVersion: v1}`))
	return f, g
}

// bearing returns an Authorization header with the token, none for "".
func bearing(token string) []string {
	if token == "" {
		return nil
	}
	return []string{"Authorization", token}
}

// TestUndecided: if the API server answers no access reviews, the history API
// answers 503, not with a part of the history.
func TestUndecided(t *testing.T) {
	f, g := widgets(t)
	for _, path := range []string{"", "/changes", "/counts", "/export", "/versions/apis/example.com/v1/namespaces/default/widgets/w", "/diff/apis/example.com/v1/widgets"} {
		for _, token := range []string{"", "Bearer somebody"} {
			g.mute.Store(true)
			if s, header := f.refused(path, bearing(token)...); s.Code != http.StatusServiceUnavailable || header.Get("Retry-After") != "1" {
				t.Errorf("%s for %q: %+v", path, token, s)
			}
		}
	}
	g.mute.Store(false)
	if w := f.get("/changes"); w.Code != http.StatusOK {
		t.Errorf("once the API server answers: %d %s", w.Code, w.Body)
	}
}

// TestDenied: every answer about several resources says which recorded ones it leaves out,
// since the caller may not list them, and is refused if these are all. The index is not: it
// describes the history, too.
func TestDenied(t *testing.T) {
	f := newFixture(t)
	const somebody, onlyPods, onlyNodes, gateway = "Bearer somebody", "Bearer pods", "Bearer nodes", ""
	var seen struct {
		Denied    []string
		Resources []struct{ Resource string }
	}
	for _, endpoint := range []string{"", "/changes", "/counts", "/export", "findings"} {
		for _, test := range []struct {
			token, namespace string
			denied           string
			none             bool
		}{
			{token: somebody, namespace: "default"},
			{token: onlyPods, namespace: "default", denied: "deployments.apps secrets"},
			{token: gateway, namespace: "default", denied: "secrets"},
			{token: gateway, denied: "secrets"},
			{token: somebody, namespace: "other", denied: "deployments.apps pods secrets", none: true},
			{token: onlyNodes, namespace: "default", denied: "deployments.apps pods secrets", none: true}, // Nodes are in no namespace
			{token: onlyNodes, denied: "deployments.apps pods secrets"},
			{token: somebody, denied: "deployments.apps nodes pods secrets", none: true},
		} {
			what := fmt.Sprintf("%s for %q in %q", endpoint, test.token, test.namespace)
			query := "?"
			if test.namespace != "" {
				query += "namespace=" + test.namespace
			}
			w := f.get(endpoint+query, bearing(test.token)...)
			if endpoint == "findings" {
				w = f.ofFindings(query, bearing(test.token)...)
				if test.namespace != "" && test.token != gateway {
					test.denied += " nodes" // findings in a namespace are read from them, too
				}
			}
			if endpoint != "" && test.none {
				if s, _ := statusOf(t, w); s.Code != http.StatusForbidden || !strings.Contains(s.Message, "you may list none") {
					t.Errorf("%s: %+v", what, s)
				}
				continue
			}
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", what, w.Code, w.Body)
				continue
			}
			seen.Denied, seen.Resources = nil, nil
			if endpoint == "/export" {
				sum, err := recording.Check(t.Context(), w.Body)
				if err != nil {
					t.Fatal(err)
				}
				if sum.Scope != nil {
					seen.Denied = sum.Scope.Denied
				}
			} else if err := json.Unmarshal(w.Body.Bytes(), &seen); err != nil {
				t.Fatal(err)
			}
			want := strings.Fields(test.denied)
			slices.Sort(want)
			if slices.Sort(seen.Denied); !slices.Equal(seen.Denied, want) {
				t.Errorf("%s leaves out %q, want %q", what, seen.Denied, want)
			}
			for _, r := range seen.Resources {
				if slices.Contains(seen.Denied, r.Resource) {
					t.Errorf("%s has %s, which it says it leaves out", what, r.Resource)
				}
			}
		}
	}
}

// TestExportUsesCallerCredentials: an export reads discovery and definitions with the
// credentials of its caller.
func TestExportUsesCallerCredentials(t *testing.T) {
	f, g := widgets(t)
	const crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
	for _, token := range []string{"", "Bearer somebody"} {
		if w := f.get("/export?resource=widgets.example.com", bearing(token)...); w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Fatalf("for %q: %d", token, w.Code)
		}
		want := token
		if want == "" {
			want = "Bearer gateway"
		}
		g.mu.Lock()
		for _, path := range []string{"/version", "/apis", "/apis/example.com/v1", crd} {
			if got := g.asked[path]; got != want {
				t.Errorf("%s was read with %q, not %q", path, got, want)
			}
		}
		clear(g.asked)
		g.mu.Unlock()
	}
	// What the API server refuses or does not have is left out. Another error is
	// temporary: the recording would lack what its clients need.
	for code, want := range map[int32]int{http.StatusForbidden: http.StatusOK, http.StatusNotFound: http.StatusOK,
		http.StatusTooManyRequests: http.StatusServiceUnavailable, http.StatusInternalServerError: http.StatusServiceUnavailable, http.StatusServiceUnavailable: http.StatusServiceUnavailable} {
		g.code.Store(code)
		if w := f.get("/export"); w.Code != want {
			t.Errorf("the API server answers %d: %d %s", code, w.Code, w.Body)
		}
	}
	g.code.Store(0)
	g.down.Store(true)
	if s, header := f.refused("/export"); s.Code != http.StatusServiceUnavailable || !strings.Contains(s.Message, "/version") || header.Get("Retry-After") != "1" {
		t.Errorf("without an API server: %+v", s)
	}
}

// TestExportInOutage: as soon as connections to the API server are refused, an export has the last
// discovery, and does without definitions and groups that the API server did not have. A caller
// with credentials of its own does not get the discovery.
func TestExportInOutage(t *testing.T) {
	f, g := widgets(t)
	f.handler.Documents = upstream.NewDocuments(f.handler.Upstream)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	var reading sync.WaitGroup
	reading.Go(func() { f.handler.Documents.Run(ctx) })
	defer reading.Wait()
	defer cancel()
	for f.handler.Documents.Find("/api/v1", "") == nil && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if w := f.get("/export", bearing("Bearer somebody")...); w.Code != http.StatusOK {
		t.Fatalf("before the outage: %d %s", w.Code, w.Body)
	}
	g.down.Store(true)
	if f.handler.Upstream.Silent() {
		t.Error("the API server is known to be silent already")
	}
	if w := f.get("/export"); w.Code != http.StatusOK || w.Body.Len() == 0 {
		t.Errorf("in the outage: %d %s", w.Code, w.Body)
	}
	if s, _ := f.refused("/export", bearing("Bearer somebody")...); s.Code != http.StatusServiceUnavailable {
		t.Errorf("for a caller with credentials: %+v", s)
	}
}

// TestWithholdsSecrets: Secrets that were recorded with --record-secrets are
// not shown without that flag.
func TestWithholdsSecrets(t *testing.T) {
	f, _ := widgets(t)
	if h := ask[api.History](f, ""); len(h.Resources) != 2 {
		t.Errorf("with --record-secrets: %+v", h.Resources)
	}
	f.withholds = true
	for _, path := range []string{"/versions/api/v1/namespaces/default/secrets/s", "/diff/api/v1/secrets", "/changes?resource=secrets", "/counts?resource=secrets", "/export?resource=secrets"} {
		for _, token := range []string{"", "Bearer somebody"} {
			if s, _ := f.refused(path, bearing(token)...); s.Code != http.StatusForbidden || !strings.Contains(s.Message, "--record-secrets") {
				t.Errorf("%s for %q: %+v", path, token, s)
			}
		}
	}
	if h := ask[api.History](f, ""); len(h.Resources) != 1 {
		t.Errorf("without: %+v", h.Resources)
	}
	if c := ask[api.Counts](f, "/counts"); len(c.Resources) != 1 {
		t.Errorf("without: %+v", c.Resources)
	}
}

// TestReviewsNamespace: the access review of a Namespace names the namespace
// itself, as the API server's does.
func TestReviewsNamespace(t *testing.T) {
	f, g := widgets(t)
	f.Stream(kube.Resource{Version: "v1", Name: "namespaces"}, 100, 0, pasttest.Thing(t, "mine", 70, `{kind: Namespace, apiVersion: v1}`))
	if w := f.get("/versions/api/v1/namespaces/mine", "Authorization", "Bearer somebody"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	want := authorizationv1.ResourceAttributes{Verb: "get", Namespace: "mine", Version: "v1", Resource: "namespaces", Name: "mine"}
	if len(g.about) != 1 || g.about[0] != want {
		t.Errorf("reviews of %+v", g.about)
	}
}

// TestReviewsClusterScope: rights in a namespace do not show changes of objects without one.
func TestReviewsClusterScope(t *testing.T) {
	f := newFixture(t) // others than the gateway may read namespace default
	for query, code := range map[string]int{"resource=pods": 200, "resource=nodes": 403, "resource=pods&resource=nodes": 403} {
		w := f.get("/changes?namespace=default&from="+f.when(0)+"&"+query, "Authorization", "Bearer somebody")
		if w.Code != code {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// TestExportOfRVs: an export of one resource takes its resourceVersions.
func TestExportOfRVs(t *testing.T) {
	f, _ := widgets(t)
	w := f.get("/export?resource=widgets.example.com&from=100&to=110")
	if sum, err := recording.Check(t.Context(), w.Body); err != nil || len(sum.Spans) != 1 || !sum.Spans[0].From.Equal(f.At(0)) || !sum.Spans[0].To.Equal(f.At(10)) {
		t.Errorf("%d %+v %v", w.Code, sum, err)
	}
	if s, _ := f.refused("/export?from=100"); s.Code != http.StatusBadRequest || !strings.Contains(s.Message, "a range of several resources has times") {
		t.Errorf("of all: %+v", s)
	}
}

// TestConcurrentExports: two exports run at once; a third gets a 429.
func TestConcurrentExports(t *testing.T) {
	f, g := widgets(t)
	g.gate, g.waits = make(chan bool), make(chan bool)
	answers := make(chan int)
	for range 2 {
		go func() { answers <- f.get("/export").Code }()
		<-g.waits
	}
	if s, header := f.refused("/export"); s.Code != http.StatusTooManyRequests || s.Reason != "TooManyRequests" || header.Get("Retry-After") != "10" {
		t.Errorf("a third one: %+v", s)
	}
	close(g.gate)
	for range 2 {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("one of two: %d", code)
		}
	}
	if w := f.get("/export"); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}
