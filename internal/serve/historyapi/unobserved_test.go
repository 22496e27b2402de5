// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// spans returns spans in seconds after the fixture's start.
func spans(f *fixture, all []api.UnobservedSpan) (got []string) {
	for _, u := range all {
		got = append(got, fmt.Sprintf("%s %s %.0f %.0f", u.Resource, u.Reason, u.From.Sub(f.At(0)).Seconds(), u.To.Sub(f.At(0)).Seconds()))
	}
	return got
}

// TestNeverObserved: what a resource lacks of which nothing was ever recorded begins with the
// range, or with the record of others, and at no zero time.
func TestNeverObserved(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Store.Stream(kube.Resource{Group: "example.com", Version: "v1", Name: "gadgets"}); err != nil {
		t.Fatal(err)
	}
	f.unsynced = errors.New("it is not watched")
	const gadget = "/versions/apis/example.com/v1/namespaces/default/gadgets/a"
	for query, want := range map[string]string{"": f.when(0), "?since=" + f.when(20): f.when(20)} {
		s, _ := f.refused(gadget + query)
		if at, _ := time.Parse(time.RFC3339Nano, want); !strings.Contains(s.Message, "gadgets.example.com were not observed between "+past.Stamp(at)) {
			t.Errorf("%s: %s, want since %s", query, s.Message, want)
		}
	}
}

// TestUnobserved: what was not observed is no lack of changes: before the record, in a
// gap, and since recording stopped or the API server was last heard.
func TestUnobserved(t *testing.T) {
	g := newGuarded()
	f := newFixtureAt(t, g)
	f.Fill()
	between := func(from, to float64) string { return "from=" + f.when(from) + "&to=" + f.when(to) }
	check := func(query string, want ...string) {
		t.Helper()
		if got := spans(f, ask[api.Changes](f, "/changes?"+query).Unobserved); !slices.Equal(got, want) {
			t.Errorf("%s: unobserved %q, want %q", query, got, want)
		}
	}
	check(between(-10, 5)+"&resource=pods", "pods before -10 0")
	check(between(-10, -5)+"&resource=nodes", "nodes before -10 -5")
	check(between(5, 20))
	check(between(70, 75)+"&resource=deployments.apps", "deployments.apps gap 50 80")

	const web = "/versions/apis/apps/v1/namespaces/default/deployments/web?"
	for query, want := range map[string][]string{
		"since=" + f.when(70) + "&until=" + f.when(75): {"deployments.apps gap 50 80"},
		"since=rv:120&until=rv:125":                    nil,
		"until=" + f.when(100):                         {"deployments.apps gap 50 80"},
		"until=" + f.when(40):                          nil,
	} {
		if got := spans(f, ask[api.Versions](f, web+query).Unobserved); !slices.Equal(got, want) {
			t.Errorf("%s: unobserved %q, want %q", query, got, want)
		}
	}

	for query, want := range map[string][]string{
		"from=" + f.when(20) + "&to=" + f.when(90): {"deployments.apps gap 50 80"},
		"from=" + f.when(90) + "&to=" + f.when(20): {"deployments.apps gap 50 80"},
		"from=" + f.when(20) + "&to=rv:200":        {"deployments.apps gap 50 80"},
		"from=" + f.when(20) + "&to=" + f.when(40): nil,
		"from=" + f.when(85) + "&to=" + f.when(90): nil,
		"from=rv:120&to=rv:125":                    nil,
	} {
		d := ask[api.Differences](f, deploymentDiff+"?limit=1&"+query)
		if got := spans(f, d.Unobserved); !slices.Equal(got, want) {
			t.Errorf("%s: unobserved %q, want %q", query, got, want)
		}
		if d.Continue != "" {
			if again := ask[api.Differences](f, deploymentDiff+"?continue="+d.Continue); again.Unobserved != nil {
				t.Errorf("%s: a later page: unobserved %v", query, again.Unobserved)
			}
		}
	}

	head := f.Store.Streams(pasttest.Pods)[0].Head().At.Sub(f.At(0)).Seconds()
	f.unsynced = errors.New("the disk is full")
	check(between(5, head)+"&resource=pods", []string(nil)...)
	check(between(head+10, head+20)+"&resource=pods", fmt.Sprintf("pods stopped %.0f %.0f", head, head+20))
	export := "/export?resource=pods&" + between(head+10, head+20)
	if s, _ := f.refused(export); s.Code != http.StatusNotFound || !strings.HasPrefix(s.Message, "nothing of it was recorded in that time; pods were not observed between ") {
		t.Errorf("an export: %+v", s)
	}
	if s, _ := f.refused("/export?" + between(head+10, head+20)); !strings.Contains(s.Message, "; 4 resources were not observed between ") || strings.Contains(s.Message, "earlier span") {
		t.Errorf("an export of several resources: %+v", s) // which were not observed at the same time
	}
	f.unsynced = nil
	quiet, err := recording.Check(t.Context(), f.get(export).Body)
	if err != nil || !quiet.From.Equal(f.At(head+10)) || !quiet.To.Equal(f.At(head+20)) || quiet.Objects == 0 {
		t.Errorf("an export of a quiet time: %+v %v", quiet, err)
	}

	g.down.Store(true)
	if err := f.handler.Upstream.Check(t.Context()); err == nil {
		t.Fatal("the API server answers")
	}
	got := ask[api.Versions](f, web+"since="+f.when(100)).Unobserved
	if len(got) != 1 || got[0].Reason != api.NoAnswer || !got[0].From.Equal(f.handler.Upstream.LastAnswer()) {
		t.Errorf("the API server is silent since %v: %+v", f.handler.Upstream.LastAnswer(), got)
	}

	f.ended = true
	f.handler.Recording = func() historyapi.RecordingState { return historyapi.RecordingState{State: api.RecordingEnded} }
	if got := ask[api.Changes](f, "/changes?resource=pods").Unobserved; slices.ContainsFunc(got, func(s api.UnobservedSpan) bool { return s.Reason != api.BeforeRecord }) {
		t.Errorf("a recording up to its end: %+v", got)
	}
}

// TestUnobservedBetweenEpochs: nothing was observed between two epochs.
func TestUnobservedBetweenEpochs(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	st := f.Stream(pasttest.Pods, 100, 0)
	if err := st.Append(nil, 110, f.At(10)); err != nil {
		t.Fatal(err)
	}
	second, err := f.Store.NewEpoch(pasttest.Pods)
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(second, 50, 200, pasttest.Thing(t, "default/a", 40, `{kind: Pod, apiVersion: v1}`))
	got := spans(f, ask[api.Changes](f, "/changes?from="+f.when(0)).Unobserved)
	if want := []string{"pods gap 10 200"}; !slices.Equal(got, want) {
		t.Errorf("unobserved %q, want %q", got, want)
	}
	s, _ := f.refused("/versions/api/v1/namespaces/default/pods/ghost")
	if want := `nothing is recorded of pods "default/ghost" since ` + past.Stamp(f.At(0)) + ", when the record begins; pods were not observed between "; !strings.HasPrefix(s.Message, want) {
		t.Errorf("an object that may have lived then: %+v", s)
	}
}

// TestUnobservedLate: the changes of a late gap have the time of its end. After a start,
// nothing is known of the time since the head until the recorder writes something.
func TestUnobservedLate(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	st := f.Stream(pasttest.Pods, 100, 0)
	if err := st.AppendLate(nil, 110, f.At(10), f.At(20)); err != nil {
		t.Fatal(err)
	}
	query := "/changes?from=" + f.when(0) + "&to=" + f.when(100)
	check := func(want ...string) {
		t.Helper()
		if got := spans(f, ask[api.Changes](f, query).Unobserved); !slices.Equal(got, want) {
			t.Errorf("unobserved %q, want %q", got, want)
		}
	}
	check("pods late 10 20")
	if _, err := f.Store.Stream(pasttest.Pods); err != nil { // as a recorder does when it starts
		t.Fatal(err)
	}
	check("pods late 10 20", "pods gap 20 100")
	if err := st.AppendLate(nil, 110, f.At(20), f.At(50)); err != nil {
		t.Fatal(err)
	}
	check("pods late 10 50") // the second continues the first
	late := history.Event{Type: kube.Added, Object: pasttest.Thing(t, "default/late", 120, `{kind: Pod, apiVersion: v1}`)}
	if err := st.AppendLate([]history.Event{late}, 120, f.At(60), f.At(70)); err != nil {
		t.Fatal(err)
	}
	f.Event(st, kube.Added, "default/timely", 180, `{kind: Pod, apiVersion: v1}`)
	if items := ask[api.Changes](f, query).Items; len(items) != 2 || !items[0].NotBefore.IsZero() || !items[1].NotBefore.Equal(f.At(60)) {
		t.Errorf("changes %+v", items)
	}
}

// TestSync: an answer waits once for each resource that it reads, and for all at the same time,
// so that one whose watches are silent is not late by the sum of them.
func TestSync(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	waited, waiting := map[kube.Resource]int{}, 0
	met := make(chan bool)
	f.syncing = func(r kube.Resource) {
		mu.Lock()
		waited[r]++
		if waiting--; waiting == 0 {
			close(met)
		}
		met := met
		mu.Unlock()
		select {
		case <-met:
		case <-time.After(10 * time.Second):
			t.Errorf("nothing else of the answer waits at the same time as %s", r)
		}
	}
	web := "/apis/apps/v1/namespaces/default/deployments/web"
	for path, n := range map[string]int{
		historyapi.FindingsPath: 3, historyapi.FindingsPath + "?namespace=default": 3, historyapi.StoryPath + web: 4, // with Secrets
		historyapi.Path + "/changes": 3, historyapi.Path + "/counts": 3, historyapi.Path + "/diff" + web: 1,
		historyapi.Path + "/versions" + web: 1, historyapi.Path + "/failing/api/v1/namespaces/default/pods/web-1": 1,
	} {
		clear(waited)
		waiting, met = n, make(chan bool)
		f.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		for r, times := range waited {
			if times != 1 {
				t.Errorf("%s waits %d times for %s", path, times, r)
			}
		}
		if len(waited) != n {
			t.Errorf("%s waits for %v, not for %d resources", path, waited, n)
		}
	}
}

// TestScope: an answer from a recording says what that is limited to, unless it lacks nothing of
// what was asked, and an export of it is limited in the same way.
func TestScope(t *testing.T) {
	f := newFixture(t)
	ofStory := func(path string) []string {
		return decoded[api.Story](t, f.story(historyapi.StoryPath+path)).LeftOut
	}
	web := "/apis/apps/v1/namespaces/default/deployments/web"
	for _, test := range []struct {
		scope recording.Scope
		only  string // "" if an answer about the namespace lacks nothing
	}{
		{recording.Scope{Namespace: "default"}, ""},
		{recording.Scope{Resources: []string{"pods"}}, ""}, // which is said of each other resource
		{recording.Scope{Namespace: "default", Selected: true, LabelSelector: "app=web"}, "namespace default; objects with app=web"},
		{recording.Scope{Selected: true}, "objects that a label selector chose"},
	} {
		f.scope = &test.scope
		var want []string
		if test.only != "" {
			want = []string{"what is not in this recording, which has only " + test.only}
		}
		if got := f.findings("?namespace=default").LeftOut; !slices.Equal(got, want) {
			t.Errorf("findings: %q, want %q", got, want)
		}
		if got := ofStory(web); !slices.Equal(got, want) {
			t.Errorf("a story: %q, want %q", got, want)
		}
		if s, _ := f.refused("/versions/api/v1/namespaces/default/pods/ghost"); strings.Contains(s.Message, ", or it is what is not in this recording, which has only "+test.only) != (want != nil) {
			t.Errorf("no versions: %q", s.Message)
		}
		if got := ask[api.History](f, "").Recording.Scope; got.Namespace != test.scope.Namespace || got.Selected != test.scope.Selected {
			t.Errorf("the index: %+v", got)
		}
		sum, err := recording.Check(t.Context(), f.get("/export").Body)
		if err != nil || sum.Scope == nil || sum.Scope.Namespace != test.scope.Namespace || sum.Scope.Selected != test.scope.Selected {
			t.Errorf("an export: %+v %v", sum.Scope, err)
		}
	}
	f.scope = &recording.Scope{Namespace: "default"}
	if got, want := f.findings("").LeftOut, []string{"what is not in this recording, which has only namespace default"}; !slices.Equal(got, want) {
		t.Errorf("findings of all namespaces: %q, want %q", got, want)
	}
}
