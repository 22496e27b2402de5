// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
)

// A guarded is an API server that shows a definition to the gateway only, and notes
// the credentials of each request.
type guarded struct {
	mute  atomic.Bool // access reviews fail
	down  atomic.Bool // all other requests fail
	gate  chan bool   // if not nil, /version waits for a value
	waits chan bool   // gets a value for each request that waits
	mu    sync.Mutex  // guards the fields below
	asked map[string]string
	about []authorizationv1.ResourceAttributes
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	who := r.Header.Get("Authorization")
	if g.gate != nil && r.URL.Path == "/version" {
		g.waits <- true
		<-g.gate
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review authorizationv1.SelfSubjectAccessReview
		if g.mute.Load() || json.NewDecoder(r.Body).Decode(&review) != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		g.about = append(g.about, *review.Spec.ResourceAttributes)
		review.Status.Allowed = true
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	case strings.Contains(r.URL.Path, "customresourcedefinitions") && who != "Bearer gateway":
		g.asked[r.URL.Path] = who
		w.WriteHeader(http.StatusForbidden)
	case g.down.Load():
		panic(http.ErrAbortHandler)
	default:
		g.asked[r.URL.Path] = who
		fmt.Fprintf(w, `{"path":%q}`, r.URL.Path)
	}
}

// widgets returns a rig with a history of custom objects and of Secrets.
func widgets(t *testing.T) (*past, *guarded, *rig) {
	p := newPast(t)
	st := p.stream(kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, 100, 0, thing(t, "default/w", 90, `{kind: Widget, apiVersion: example.com/v1}`))
	p.event(st, kube.Modified, "default/w", 110, `{kind: Widget, apiVersion: example.com/v1, spec: {size: 1}}`)
	p.stream(secretResource, 100, 0, thing(t, "default/s", 70, `{kind: Secret, apiVersion: v1}`))
	g := &guarded{asked: map[string]string{}}
	r := newRig(t, g, rigOptions{config: func(c *rest.Config) { c.BearerToken = "gateway" }})
	r.gateway.ReadHistory(p)
	return p, g, r
}

// bearing returns an Authorization header with the token, none for "".
func bearing(token string) []string {
	if token == "" {
		return nil
	}
	return []string{"Authorization", token}
}

// TestHistoryUndecided: if the API server answers no access reviews, the history API
// answers 503, not with a part of the history.
func TestHistoryUndecided(t *testing.T) {
	_, g, r := widgets(t)
	for _, path := range []string{"", "/changes", "/counts", "/export", "/versions/apis/example.com/v1/namespaces/default/widgets/w", "/diff/apis/example.com/v1/widgets"} {
		for _, token := range []string{"", "Bearer somebody"} {
			g.mute.Store(true)
			res := r.get("/watchkeeper/v1/history"+path, bearing(token)...)
			if s := statusOf(t, res); s.Code != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" {
				t.Errorf("%s for %q: %+v", path, token, s)
			}
		}
	}
	g.mute.Store(false)
	if res := r.get("/watchkeeper/v1/history/changes"); res.StatusCode != http.StatusOK {
		t.Errorf("once the API server answers: %s", res.Status)
	}
}

// TestExportUsesCallerCredentials: an export reads discovery and definitions with the
// credentials of its caller.
func TestExportUsesCallerCredentials(t *testing.T) {
	_, g, r := widgets(t)
	const crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
	for _, token := range []string{"", "Bearer somebody"} {
		res := r.get("/watchkeeper/v1/history/export?resource=widgets.example.com", bearing(token)...)
		if body := readAll(t, res); res.StatusCode != http.StatusOK || body == "" {
			t.Fatalf("for %q: %s", token, res.Status)
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
	g.down.Store(true)
	res := r.get("/watchkeeper/v1/history/export")
	if s := statusOf(t, res); s.Code != http.StatusServiceUnavailable || !strings.Contains(s.Message, "/version") || res.Header.Get("Retry-After") != "1" {
		t.Errorf("without an API server: %+v", s)
	}
}

// TestHistoryWithholdsSecrets: Secrets that were recorded with --record-secrets are
// not shown without that flag.
func TestHistoryWithholdsSecrets(t *testing.T) {
	p, _, r := widgets(t)
	if h := ask[api.History](r, ""); len(h.Resources) != 2 {
		t.Errorf("with --record-secrets: %+v", h.Resources)
	}
	p.withholds = true
	for _, path := range []string{"/versions/api/v1/namespaces/default/secrets/s", "/diff/api/v1/secrets", "/changes?resource=secrets", "/counts?resource=secrets", "/export?resource=secrets"} {
		for _, token := range []string{"", "Bearer somebody"} {
			if s := statusOf(t, r.get("/watchkeeper/v1/history"+path, bearing(token)...)); s.Code != http.StatusForbidden || !strings.Contains(s.Message, "--record-secrets") {
				t.Errorf("%s for %q: %+v", path, token, s)
			}
		}
	}
	if h := ask[api.History](r, ""); len(h.Resources) != 1 {
		t.Errorf("without: %+v", h.Resources)
	}
	if c := ask[api.Counts](r, "/counts"); len(c.Resources) != 1 {
		t.Errorf("without: %+v", c.Resources)
	}
}

// TestHistoryReviewsNamespace: the access review of a Namespace names the namespace
// itself, as the API server's does.
func TestHistoryReviewsNamespace(t *testing.T) {
	p, g, r := widgets(t)
	p.stream(kube.Resource{Version: "v1", Name: "namespaces"}, 100, 0, thing(t, "mine", 70, `{kind: Namespace, apiVersion: v1}`))
	if res := r.get("/watchkeeper/v1/history/versions/api/v1/namespaces/mine", "Authorization", "Bearer somebody"); res.StatusCode != http.StatusOK {
		t.Errorf("%s %s", res.Status, readAll(t, res))
	}
	want := authorizationv1.ResourceAttributes{Verb: "get", Namespace: "mine", Version: "v1", Resource: "namespaces", Name: "mine"}
	if len(g.about) != 1 || g.about[0] != want {
		t.Errorf("reviews of %+v", g.about)
	}
}

// TestConcurrentExports: two exports run at once; a third gets a 429.
func TestConcurrentExports(t *testing.T) {
	_, g, r := widgets(t)
	g.gate, g.waits = make(chan bool), make(chan bool)
	const path = "/watchkeeper/v1/history/export"
	answers := make(chan int)
	for range 2 {
		go func() {
			res := r.get(path)
			res.Body.Close()
			answers <- res.StatusCode
		}()
		<-g.waits
	}
	res := r.get(path)
	if s := statusOf(t, res); s.Code != http.StatusTooManyRequests || s.Reason != "TooManyRequests" || res.Header.Get("Retry-After") != "10" {
		t.Errorf("a third one: %+v", s)
	}
	close(g.gate)
	for range 2 {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("one of two: %d", code)
		}
	}
	go func() { <-g.waits }()
	if res := r.get(path); res.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s", res.Status)
	}
}
