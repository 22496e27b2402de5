// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
)

func TestIndex(t *testing.T) {
	f := newFixture(t)
	h := ask[api.History](f, "")
	if h.Recording.State != api.RecordingOn || h.Store.Bytes == 0 || h.Store.MaxBytes != 1<<30 || h.Store.MaxAgeSeconds != 48*3600 {
		t.Errorf("%+v", h)
	}
	var got []string
	for _, res := range h.Resources {
		e := res.Epochs[0]
		got = append(got, fmt.Sprint(res.Resource, " ", res.Path, " ", e.Span.From.ResourceVersion, "-", e.Span.To.ResourceVersion, " gaps ", len(e.Gaps)))
	}
	want := []string{ // the gateway may not list Secrets
		"deployments.apps /apis/apps/v1/deployments 100-200 gaps 1",
		"nodes /api/v1/nodes 100-159 gaps 0",
		"pods /api/v1/pods 100-155 gaps 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	gap := h.Resources[0].Epochs[0].Gaps[0]
	if gap.From.ResourceVersion != "150" || gap.To.ResourceVersion != "170" || !gap.To.Time.Equal(f.At(80)) {
		t.Errorf("gap %+v", gap)
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	for path, want := range map[string]string{
		"/none":                         "404 there is nothing at",
		"/versions":                     "404 there is nothing at",
		"/versions/":                    "404 is not the path",
		"/counts/api/v1/pods":           "404 there is nothing at",
		"/versions/api/v1/pods":         "400 is a collection",
		"/versions/healthz":             "404 is not the path",
		"/versions/api/v1/watch/pods/a": "404 is not the path",
		"/versions/api/v1/namespaces/default/pods/none":                 "404 nothing is recorded of pods \"default/none\"",
		"/versions/api/v1/namespaces/default/pods/a/status":             "404 is not the path",
		"/versions/api/v1/namespaces/default/configmaps/a":              "404 --record",
		"/versions/api/v1/namespaces/default/secrets/s":                 "403 may not list secrets",
		"/versions/apis/rejected/v1/x/y":                                "403 rejected by the filter",
		"/counts?bin=2500000h":                                          "400 a year at the most",
		"/counts?from=0001-01-01T00:00:00Z":                             "400 before there were clusters",
		"/versions/api/v1/nodes/n1?limit=0":                             "400 limit is \"0\"",
		"/versions/api/v1/nodes/n1?limit=1001":                          "400 from 1 to 1000",
		"/versions/api/v1/nodes/n1?noise=no":                            "400 noise",
		"/versions/api/v1/nodes/n1?objects=x":                           "400 objects",
		"/versions/api/v1/nodes/n1?since=soon":                          "400 since: \"soon\" is not a moment",
		"/versions/api/v1/nodes/n1?continue=1":                          "400 continue",
		"/versions/api/v1/nodes/n1?from=1h":                             "400 there is no parameter \"from\": the parameters are since",
		"/versions/api/v1/nodes/n1?since=1h&since=2h":                   "400 since is given 2 times",
		"/versions/api/v1/nodes/n1?since=%zz":                           "400 the query",
		"/diff/api/v1/nodes?from=2d":                                    "410 nodes are recorded from 100",
		"/diff/api/v1/nodes?from=rv:99":                                 "410 nodes are recorded from 100",
		"/diff/api/v1/nodes?from=" + f.when(10) + "&to=rv:100000":       "400 nodes are recorded from 100",
		"/diff/api/v1/nodes?from=" + f.when(10) + "&to=" + f.when(7200): "400 after the recorded history",
		"/diff/apis/apps/v1/deployments?from=rv:160":                    "410 in a gap",
		"/diff/apis/apps/v1/deployments?from=" + f.when(60):             "410 in a gap",
		"/diff/api/v1/nodes?continue=e30":                               "400 continue",
		"/diff/api/v1/nodes?from=rv:101&labelSelector=a%3D%3D%3Db":      "400 labelSelector",
		"/diff/api/v1/nodes?from=rv:101&fieldSelector=a":                "400 fieldSelector",
		"/diff/api/v1/nodes?from=rv:101&fieldSelector=spec.x%3Da":       "400 is not a field selector of nodes",
		"/counts?resource=configmaps":                                   "404 there is no recorded resource \"configmaps\"",
		"/counts?resource=secrets":                                      "403 may not list secrets",
		"/counts?from=rv:100":                                           "400 times",
		"/counts?from=now&to=1h":                                        "400 is not before",
		"/counts?bin=1":                                                 "400 bin is \"1\"",
		"/counts?bin=1us":                                               "400 bin is",
		"/counts?bin=1s":                                                "400 3601 times",
		"/changes?continue=%21":                                         "400 continue",
		"/changes?from=1h&to=2h":                                        "400 is not before",
		"/export?from=1h&to=2h":                                         "400 is not before",
		"/export?from=rv:100":                                           "400 times",
		"/export?since=rv:100":                                          "400 times",
		"/changes?since=1h&until=2h":                                    "400 since",
		"/changes?since=1h&from=2h":                                     "400 since and from are the same parameter",
		"/counts?until=soon":                                            "400 until: \"soon\" is not a moment",
	} {
		code, text, _ := strings.Cut(want, " ")
		s, _ := f.refused(path)
		if fmt.Sprint(s.Code) != code || !strings.Contains(s.Message, text) {
			if path == "/counts?bin=1s" && s.Code == 400 && strings.Contains(s.Message, "times") {
				continue // one bin more, at the turn of a second
			}
			t.Errorf("%s: %d %s, not %s", path, s.Code, s.Message, want)
		}
	}
	if s, _ := statusOf(t, f.do(http.MethodPost, "")); s.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %+v", s)
	}
	// A time zone need not be escaped.
	if w := f.get("/export?from=" + f.At(10).In(time.FixedZone("", 7200)).Format(time.RFC3339)); w.Code != http.StatusOK {
		t.Errorf("a time zone: %d %s", w.Code, w.Body)
	}
	// The access of a caller with credentials decides what it may read.
	for path, code := range map[string]int{
		"/versions/api/v1/namespaces/default/pods/a":       200,
		"/versions/api/v1/namespaces/kube-system/pods/b":   403,
		"/diff/api/v1/namespaces/default/pods?from=rv:100": 200,
		"/diff/api/v1/pods?from=rv:100":                    403,
		"/changes?resource=pods&namespace=default":         200,
		"/changes?resource=pods":                           403,
		"/counts?resource=pods":                            403,
		"/versions/api/v1/namespaces/default/secrets/s":    200,
	} {
		if w := f.get(path, "Authorization", "Bearer of-default"); w.Code != code {
			t.Errorf("%s with credentials: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestEndsWithItsRequest: a canceled request ends its computation.
func TestEndsWithItsRequest(t *testing.T) {
	f := newFixture(t)
	from := "?from=" + f.when(10)
	for _, path := range []string{"/versions/api/v1/nodes/n1", "/diff/api/v1/nodes" + from, "/changes" + from, "/counts" + from} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, want := range []int{http.StatusOK, http.StatusGatewayTimeout} {
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, historyapi.Path+path, nil)
			w := httptest.NewRecorder()
			f.handler.ServeHTTP(w, req)
			if w.Code != want {
				t.Errorf("%s: %d, not %d: %.200s", path, w.Code, want, w.Body)
			}
			cancel()
		}
	}
}

// TestAfterRecording: no moment after the end of a finished recording is described, while
// a range may extend beyond it.
func TestAfterRecording(t *testing.T) {
	f := newFixture(t)
	f.ended = true
	for path, code := range map[string]int{
		"/changes?from=" + f.when(90) + "&to=" + f.when(200):                       http.StatusOK,
		"/changes?from=" + f.when(102) + "&to=" + f.when(200):                      http.StatusBadRequest,
		"/diff/api/v1/pods?from=" + f.when(90) + "&to=now":                         http.StatusOK,
		"/diff/api/v1/pods?from=" + f.when(90) + "&to=" + f.when(102):              http.StatusBadRequest,
		"/versions/api/v1/namespaces/default/pods/a?since=" + f.when(102):          http.StatusBadRequest,
		"/versions/api/v1/namespaces/default/pods/a?since=1h&until=" + f.when(102): http.StatusOK,
	} {
		w := f.get(path)
		if w.Code != code || code == http.StatusBadRequest && !strings.Contains(w.Body.String(), "after the end of the recording") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestExportOfNodes: a cluster-scoped resource that is named ignores the namespace, as in
// kubectl, but not for a caller that may read only the namespace (T8).
func TestExportOfNodes(t *testing.T) {
	f := newFixture(t)
	resources := func(path string, headers ...string) (names []string) {
		t.Helper()
		w := f.get(path, headers...)
		if w.Code == http.StatusNotFound {
			return nil
		}
		sum, err := recording.Check(t.Context(), w.Body)
		if err != nil {
			t.Fatalf("%s: %d %v", path, w.Code, err)
		}
		for _, span := range sum.Spans {
			names = append(names, span.Resource.GroupResource())
		}
		return names
	}
	if got := resources("/export?from=2h&namespace=default&resource=nodes"); !slices.Equal(got, []string{"nodes"}) {
		t.Errorf("nodes by name: %v", got)
	}
	if got := resources("/export?from=2h&namespace=default"); slices.Contains(got, "nodes") || !slices.Contains(got, "pods") {
		t.Errorf("all of the namespace: %v", got)
	}
	if w := f.get("/export?from=2h&namespace=default&resource=nodes&resource=pods", "Authorization", "Bearer other"); w.Code != http.StatusForbidden {
		t.Errorf("a caller of the namespace: %d", w.Code)
	}
}
