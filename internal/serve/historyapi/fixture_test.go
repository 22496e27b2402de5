// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A fixture serves the history API over a history that the test writes.
type fixture struct {
	*pasttest.Cluster
	t       *testing.T
	handler *historyapi.Handler

	withholds bool // Secrets
	ended     bool // nothing more is recorded
	unsynced  error
	synced    []kube.Resource // despite unsynced
	syncing   func(kube.Resource)
	scope     *recording.Scope
	ahead     time.Duration // of the clock
	closed    bool          // the history is not open
	missing   string        // why nothing is recorded
}

// newFixture returns a fixture with the story of [pasttest.Cluster].
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	f.Fill()
	return f
}

// allow decides access reviews: the gateway may not list Secrets, and other callers may
// read namespace default, or only the Pods in it, or only Nodes.
func allow(r *fakeapi.Request, a authorizationv1.ResourceAttributes) bool {
	if r.Header.Get("Authorization") == "Bearer gateway" {
		return a.Resource != "secrets"
	}
	if r.Header.Get("Authorization") == "Bearer nodes" {
		return a.Resource == "nodes"
	}
	return a.Namespace == "default" && (a.Resource == "pods" || r.Header.Get("Authorization") != "Bearer pods")
}

// newFixtureAt returns a fixture with an empty history of an API server, which knows the
// gateway by its token "gateway".
func newFixtureAt(t *testing.T, apiserver http.Handler) *fixture {
	t.Helper()
	f := &fixture{t: t, Cluster: pasttest.NewCluster(t)}
	network := fakeapi.NewNetwork(apiserver)
	up, err := upstream.New(&rest.Config{Host: "http://apiserver", Dial: network.Dial, BearerToken: "gateway"}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	background := upstream.NewBackground()
	t.Cleanup(func() {
		background.Stop()
		up.Close()
		network.Close()
	})
	p := past.New(record{f}, background, slog.New(slog.DiscardHandler))
	f.handler = historyapi.New(historyapi.Handler{
		Past: p, Access: access.NewPast(up, p, background), Upstream: up,
		Recording: func() historyapi.RecordingState {
			return historyapi.RecordingState{State: api.RecordingOn, Scope: f.scope}
		},
		Filter: func(r *http.Request) *metav1.Status {
			if strings.HasPrefix(r.URL.Path, "/apis/rejected/") {
				return status.Forbidden("rejected by the filter")
			}
			return nil
		},
	})
	return f
}

// A record is the fixture's history as a past.Record.
type record struct{ *fixture }

func (r record) Store() *history.Store {
	if r.closed {
		return nil
	}
	return r.Cluster.Store
}

func (r record) Now() time.Time                  { return time.Now().Add(r.ahead) }
func (r record) Ended() bool                     { return r.ended }
func (r record) Missing(kube.Resource) string    { return r.missing }
func (r record) Withholds(id kube.Resource) bool { return r.withholds && id == pasttest.Secrets }

func (r record) Sync(_ context.Context, id kube.Resource) error {
	if r.syncing != nil {
		r.syncing(id)
	}
	if slices.Contains(r.synced, id) {
		return nil
	}
	return r.unsynced
}

func (r record) Continued(kube.Resource, *timeline.Timeline, uint64) *history.Stream { return nil }

// when returns the time so many seconds after the start, as a query parameter.
func (f *fixture) when(seconds float64) string { return f.At(seconds).UTC().Format(time.RFC3339Nano) }

// do sends a request for a path below that of the API; headers are pairs.
func (f *fixture) do(method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(f.t.Context(), method, historyapi.Path+path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

func (f *fixture) get(path string, headers ...string) *httptest.ResponseRecorder {
	return f.do(http.MethodGet, path, headers...)
}

// refused sends a GET that has to be answered with a Status.
func (f *fixture) refused(path string, headers ...string) (metav1.Status, http.Header) {
	f.t.Helper()
	return statusOf(f.t, f.get(path, headers...))
}

func statusOf(t *testing.T, w *httptest.ResponseRecorder) (s metav1.Status, header http.Header) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatalf("%d: not a Status: %q", w.Code, w.Body)
	}
	if s.Kind != "Status" || s.APIVersion != "v1" || s.Status != metav1.StatusFailure || int(s.Code) != w.Code {
		t.Errorf("%d: odd Status: %s", w.Code, w.Body)
	}
	return s, w.Header()
}

// ask sends a GET and decodes the answer.
func ask[T any](f *fixture, path string) (answer T) {
	f.t.Helper()
	return decoded[T](f.t, f.get(path))
}

// decoded decodes an answer that has to be JSON.
func decoded[T any](t *testing.T, w *httptest.ResponseRecorder) (answer T) {
	t.Helper()
	if h := w.Header(); w.Code != http.StatusOK || h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v %s", w.Code, h, w.Body)
	}
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&answer); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return answer
}
