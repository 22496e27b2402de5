// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// findings asks for findings.
func (f *fixture) findings(query string) (answer api.Findings) {
	f.t.Helper()
	w := f.ofFindings(query)
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&answer); err != nil || w.Code != http.StatusOK {
		f.t.Fatalf("%s: %d %v", query, w.Code, err)
	}
	return answer
}

// TestFindings: a rollout makes Pods crash. The finding says since when, which is not what
// the Pod's own status says, and what changed before: of the Deployment and the ConfigMap
// that its Pods use, not of others, nor what controllers write.
func TestFindings(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	stamp := func(seconds float64) string { return f.At(seconds).UTC().Format(time.RFC3339) }
	resource := func(group, name string) kube.Resource { return kube.Resource{Group: group, Version: "v1", Name: name} }
	deployment := func(tag string, more string) string {
		return `{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 1, template: {spec: {containers: [{name: main, image: "x:` + tag + `"}]}}}, status: {conditions: [{type: Available, status: "True"}]` + more + `}}`
	}
	deployments := f.Stream(resource("apps", "deployments"), 100, 0, pasttest.Thing(t, "default/web", 90, deployment("1", "")), pasttest.Thing(t, "default/other", 91, deployment("1", "")))
	f.Stream(resource("apps", "replicasets"), 100, 0, pasttest.Thing(t, "default/web-2", 90, `{kind: ReplicaSet, apiVersion: apps/v1, metadata: {ownerReferences: [{kind: Deployment, name: web, uid: u, controller: true}]}}`))
	config := f.Stream(resource("", "configmaps"), 100, 0, pasttest.Thing(t, "default/settings", 80, `{kind: ConfigMap, apiVersion: v1, data: {a: "1"}}`))
	pods := f.Stream(resource("", "pods"), 100, 0)
	nodes := f.Stream(pasttest.Nodes, 100, 0, pasttest.Thing(t, "n1", 80, `{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: "True"}]}}`))
	pod := func(state string) string {
		return `{kind: Pod, apiVersion: v1, metadata: {ownerReferences: [{kind: ReplicaSet, name: web-2, uid: u, controller: true}]},
			spec: {nodeName: n1, volumes: [{name: c, configMap: {name: settings}}], containers: [{name: main}]},
			status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "` + stamp(22) + `"}], containerStatuses: [` + state + `]}}`
	}
	crashed := func(at float64, restarts int) string {
		return pod(fmt.Sprintf(`{name: main, restartCount: %d, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error, finishedAt: %q}}}`, restarts, stamp(at)))
	}
	f.Event(config, kube.Modified, "default/settings", 110, `{kind: ConfigMap, apiVersion: v1, data: {a: "2"}}`)
	f.Event(deployments, kube.Modified, "default/other", 115, deployment("2", ""))
	f.Event(deployments, kube.Modified, "default/web", 120, deployment("2", ""))
	f.Event(deployments, kube.Modified, "default/web", 121, deployment("2", ", replicas: 2"))
	f.Event(pods, kube.Added, "default/web-2-a", 122, pod(`{name: main, state: {running: {}}}`))
	f.Event(pods, kube.Modified, "default/web-2-a", 130, crashed(30, 0))
	f.Event(deployments, kube.Modified, "default/web", 135, deployment("3", ""))
	f.Event(pods, kube.Modified, "default/web-2-a", 150, crashed(50, 1))
	f.Event(nodes, kube.Modified, "n1", 160, fmt.Sprintf(`{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: Unknown, lastTransitionTime: %q}]}}`, stamp(60)))
	f.Event(nodes, kube.Modified, "n1", 170, `{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: "True"}]}}`)

	got := f.findings("?at=" + f.when(55))
	if len(got.Items) != 1 || got.Objects != 6 || !got.At.Equal(f.At(55)) {
		t.Fatalf("%+v", got)
	}
	item := got.Items[0]
	var before []string
	for _, c := range item.Before {
		before = append(before, fmt.Sprintf("%v %s %s %s: %s", c.Time.Sub(f.At(0)), c.Resource, c.Namespace, c.Name, strings.Join(c.Summary, "; ")))
	}
	want := []string{"20s deployments.apps default web: image x:1 → 2", "10s configmaps default settings: key a changed"}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Error(diff)
	}
	item.Before = nil
	if diff := cmp.Diff(api.Finding{
		Rule: "crash", Severity: api.SeverityCritical, Kind: "Deployment", Namespace: "default", Name: "web", Resource: "deployments.apps", Path: "/apis/apps/v1/namespaces/default/deployments/web",
		Title: "1 Pod CrashLoopBackOff · Error, exit code 1", Since: f.At(30).UTC(), SinceKnown: true, Touches: 1,
		Objects: []api.FindingObject{{Kind: "Pod", Namespace: "default", Name: "web-2-a", Path: "/api/v1/namespaces/default/pods/web-2-a"}},
	}, item); diff != "" {
		t.Error(diff)
	}
	if got := f.findings("?at=" + f.when(25)); len(got.Items) != 0 {
		t.Errorf("before the crash: %+v", got.Items)
	}
	// A lost Node is a finding in the namespaces of its Pods only.
	kinds := func(query string) (all []string) {
		for _, item := range f.findings(query + "&at=" + f.when(65)).Items {
			all = append(all, item.Severity+" "+item.Kind+" "+item.Name)
		}
		return all
	}
	for query, want := range map[string][]string{
		"?namespace=":        {"critical Node n1", "critical Deployment web"},
		"?namespace=default": {"critical Node n1", "critical Deployment web"},
		"?namespace=none":    nil,
	} {
		if got := kinds(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestFindingsUnobserved: what is not known now is a finding; what was recorded later is one of
// less weight, and a moment before everything is refused.
func TestFindingsUnobserved(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	st := f.Stream(kube.Resource{Version: "v1", Name: "pods"}, 100, 0)
	if err := st.AppendGap(nil, 120, f.At(20)); err != nil {
		t.Fatal(err)
	}
	f.Stream(pasttest.Nodes, 100, 5)
	titles := func(at float64) (all []string) {
		for _, item := range f.findings("?at=" + f.when(at)).Items {
			if !item.Since.IsZero() {
				item.Title += fmt.Sprintf(" since %v", item.Since.Sub(f.At(0)))
			}
			all = append(all, item.Severity+" "+item.Title+" "+strings.Join(item.Messages, " "))
		}
		return all
	}
	second := func(seconds float64) string { return f.At(seconds).UTC().Format(time.RFC3339) }
	want := "warning 1 resource not observed: pods since 0s the moment is in a gap of the record: the nearest moments at which all is known are " + second(0) + " and " + second(20)
	if got := titles(10); !slices.Equal(got, []string{want}) {
		t.Errorf("in a gap: %q, want %q", got, want)
	}
	if err := f.Store.AddOutages(history.Outage{Since: f.At(2), Until: f.At(19)}); err != nil {
		t.Fatal(err)
	}
	want = strings.Replace(want, "the moment is in a gap of the record", "the API server did not answer then", 1)
	if got := titles(10); !slices.Equal(got, []string{want}) {
		t.Errorf("in an outage: %q, want %q", got, want)
	}
	want = "info 1 resource not observed: nodes the record begins later: all is known from " + second(5)
	if got := titles(0); !slices.Equal(got, []string{want}) {
		t.Errorf("before: %q, want %q", got, want)
	}
	if _, err := f.Store.Stream(kube.Resource{Group: "apps", Version: "v1", Name: "deployments"}); err != nil { // it was never listed
		t.Fatal(err)
	}
	want = "warning 1 resource not observed: deployments.apps nothing of them is recorded"
	if got := titles(30); !slices.Equal(got, []string{want}) {
		t.Errorf("never listed: %q, want %q", got, want)
	}
	if s, _ := statusOf(t, f.ofFindings("?at="+f.when(-5))); s.Code != http.StatusGone || s.Details.Kind != "" {
		t.Errorf("before everything: %+v", s)
	}
	if s, _ := statusOf(t, f.ofFindings("?at=rv:110")); s.Code != http.StatusBadRequest {
		t.Errorf("at a resourceVersion: %+v", s)
	}
	if s, _ := statusOf(t, f.ofFindings("?from=1h")); s.Code != http.StatusBadRequest {
		t.Errorf("with another parameter: %+v", s)
	}
}

// TestFindingsDenied: resources that the caller may not list are left out, and named; if there
// is no other one, the answer is 403, not an empty list.
func TestFindingsDenied(t *testing.T) {
	f := newFixture(t) // others than the gateway may read namespace default
	f.t = t
	w := f.ofFindings("?namespace=default", "Authorization", "Bearer somebody")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"denied":["nodes"]`) || strings.Contains(w.Body.String(), `"kind":"Node"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, query := range []string{"", "?namespace=other"} {
		if s, _ := statusOf(t, f.ofFindings(query, "Authorization", "Bearer somebody")); s.Code != http.StatusForbidden {
			t.Errorf("%s: %+v", query, s)
		}
	}
	g, guarded := widgets(t)
	guarded.mute.Store(true)
	if s, header := statusOf(t, g.ofFindings("")); s.Code != http.StatusServiceUnavailable || header.Get("Retry-After") != "1" {
		t.Errorf("undecided: %+v", s)
	}
}

// TestFindingsOfUnknownNamespace: nothing fails in a namespace that never existed, so the answer
// is 404, as on the command line; but not if it is not known whether the namespace exists.
func TestFindingsOfUnknownNamespace(t *testing.T) {
	g := &guarded{asked: map[string]string{}}
	g.Server = fakeapi.New(fakeapi.Options{Allow: func(r *fakeapi.Request, a authorizationv1.ResourceAttributes) bool {
		return a.Resource == "pods" || r.Header.Get("Authorization") == "Bearer gateway"
	}})
	g.Control(g.control)
	f := newFixtureAt(t, g)
	f.Stream(kube.Resource{Version: "v1", Name: "pods"}, 100, 0)
	code := func(namespace string, headers ...string) int {
		return f.ofFindings("?namespace="+namespace, headers...).Code
	}
	if got := code("none"); got != http.StatusOK {
		t.Errorf("without Namespaces: %d", got)
	}
	f.Stream(kube.Resource{Version: "v1", Name: "namespaces"}, 100, 0, pasttest.Thing(t, "default", 90, `{kind: Namespace, apiVersion: v1}`))
	if got := code("default"); got != http.StatusOK {
		t.Errorf("one that exists: %d", got)
	}
	if s, _ := statusOf(t, f.ofFindings("?namespace=none")); s.Code != http.StatusNotFound || s.Reason != "NotFound" || !strings.HasPrefix(s.Message, "nothing is recorded in namespace none since 2") || !strings.HasSuffix(s.Message, "Z, when the record begins") {
		t.Errorf("one that does not: %+v", s)
	}
	if got := code("none", "Authorization", "Bearer somebody"); got != http.StatusOK {
		t.Errorf("for somebody who may not get Namespaces: %d", got)
	}
	g.down.Store(true)
	if err := f.handler.Upstream.Check(t.Context()); err == nil {
		t.Fatal("the API server answers")
	}
	if got := code("none"); got != http.StatusOK {
		t.Errorf("while the API server does not answer: %d", got)
	}
	f.handler.Recording = func() historyapi.RecordingState { return historyapi.RecordingState{State: api.RecordingEnded} }
	if got := code("none"); got != http.StatusNotFound {
		t.Errorf("of a recording: %d", got)
	}
}

// ofFindings sends a request for findings.
func (f *fixture) ofFindings(query string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, historyapi.FindingsPath+query, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// TestFindingsUnrecorded: while nothing is recorded, as on a full disk, the present is that of
// the cache, the past is refused, and what the history does not know is said.
func TestFindingsUnrecorded(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	stamp := func(seconds float64) string { return f.At(seconds).UTC().Format(time.RFC3339) }
	pod := func(crashed float64) string {
		return fmt.Sprintf(`{kind: Pod, apiVersion: v1, status: {phase: Running, containerStatuses: [{name: main, state: {terminated: {exitCode: 1, finishedAt: %q}}}]}}`, stamp(crashed))
	}
	crashing := pasttest.Thing(t, "default/a", 120, pod(20))
	f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/recovered", 90, pod(-5)), pasttest.Thing(t, "default/a", 91, `{kind: Pod, apiVersion: v1, status: {phase: Pending}}`))
	f.Stream(pasttest.Deployments, 100, 5)
	f.unsynced = errors.New("the disk is full")
	f.handler.Recording = func() historyapi.RecordingState {
		return historyapi.RecordingState{State: api.RecordingFailed, Reason: "the disk is full"}
	}
	titles := func(got api.Findings) (all []string) {
		for _, item := range got.Items {
			all = append(all, fmt.Sprintf("%s %s %s since %v %v", item.Severity, item.Name, item.Title, item.Since.Sub(f.At(0)).Round(time.Second), item.SinceKnown))
		}
		return all
	}
	if got, want := titles(f.findings("")), []string{"critical watchkeeper 2 resources not observed: deployments.apps, pods since 0s true", "critical recovered 1 Pod Error · exit code 1 since 0s false"}; !slices.Equal(got, want) {
		t.Errorf("without the cache: %q, want %q", got, want)
	}
	cached := map[string]*timeline.Snapshot{"pods": snapshotOf(t, crashing), "deployments.apps": snapshotOf(t)}
	f.handler.Live = func(_ context.Context, r kube.Resource) *timeline.Snapshot { return cached[r.GroupResource()] }
	for _, query := range []string{"", "?at=now", "?namespace=default"} {
		got := f.findings(query)
		if want := []string{"critical a 1 Pod Error · exit code 1 since 20s false"}; !slices.Equal(titles(got), want) || got.Objects != 1 {
			t.Errorf("%q: %q, want %q", query, titles(got), want)
		}
		if want := []string{"what changed since " + past.Stamp(f.At(0)) + ": deployments.apps, pods are not recorded since then (the disk is full)"}; !slices.Equal(got.LeftOut, want) {
			t.Errorf("%q: %q, want %q", query, got.LeftOut, want)
		}
	}
	if s, _ := statusOf(t, f.ofFindings("?at=1s")); s.Code != http.StatusServiceUnavailable {
		t.Errorf("the past: %+v", s)
	}
	// What is not in the cache either is not observed.
	delete(cached, "deployments.apps")
	if got := titles(f.findings("")); len(got) != 2 || !strings.Contains(got[0], "warning watchkeeper 1 resource not observed: deployments.apps") {
		t.Errorf("%q", got)
	}
}

// TestFindingsOfNothing: if nothing is recorded that fails, as after a start with a full disk,
// that is no state in which nothing fails.
func TestFindingsOfNothing(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	for _, query := range []string{"", "?namespace=default"} {
		if s, _ := statusOf(t, f.ofFindings(query)); s.Code != http.StatusNotFound || !strings.Contains(s.Message, "none of the resources that findings are read from is recorded") {
			t.Errorf("%q: %+v", query, s)
		}
	}
	f.handler.Recording = func() historyapi.RecordingState {
		return historyapi.RecordingState{State: api.RecordingFailed, Reason: "the disk is almost full"}
	}
	if s, _ := statusOf(t, f.ofFindings("")); s.Code != http.StatusServiceUnavailable || !strings.Contains(s.Message, "nothing is recorded: the disk is almost full") {
		t.Errorf("with a full disk: %+v", s)
	}
	for _, path := range []string{"/changes", "/counts", "/export"} {
		if s, _ := f.refused(path); s.Code != http.StatusServiceUnavailable || s.Message != "nothing is recorded: the disk is almost full" {
			t.Errorf("%s with a full disk: %+v", path, s)
		}
	}
}

// TestFindingsWithoutRecord: while the history is not open, or is new and cannot be written, the
// present is that of the cache, of what would be recorded and the caller may list.
func TestFindingsWithoutRecord(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	f.missing = "the disk is full"
	f.handler.Recording = func() historyapi.RecordingState {
		return historyapi.RecordingState{State: api.RecordingFailed, Reason: f.missing}
	}
	owned := `{kind: Pod, apiVersion: v1, metadata: {uid: p, ownerReferences: [{kind: ReplicaSet, name: web-1, apiVersion: apps/v1, controller: true, uid: r}]}, status: {phase: Running, containerStatuses: [{name: main, state: {terminated: {exitCode: 1}}}]}}`
	replicas := pasttest.Thing(t, "default/web-1", 80, `{kind: ReplicaSet, apiVersion: apps/v1, metadata: {uid: r, ownerReferences: [{kind: Deployment, name: web, apiVersion: apps/v1, controller: true, uid: d}]}}`)
	cached := map[string]*timeline.Snapshot{"pods": snapshotOf(t, pasttest.Thing(t, "default/a", 90, owned), pasttest.Thing(t, "other/b", 91, owned)), "replicasets.apps": snapshotOf(t, replicas)}
	for _, name := range []string{"cronjobs.batch", "daemonsets.apps", "deployments.apps", "endpointslices.discovery.k8s.io", "events", "horizontalpodautoscalers.autoscaling", "jobs.batch", "nodes"} {
		cached[name] = snapshotOf(t)
	}
	f.handler.Live = func(_ context.Context, r kube.Resource) *timeline.Snapshot { return cached[r.GroupResource()] }
	for _, f.closed = range []bool{true, false} {
		lacks := map[bool]string{true: "the history is not open", false: "nothing is recorded"}[f.closed]
		for _, test := range []struct {
			query, token   string
			found          int
			denied, nobody bool
		}{
			{query: "", found: 2},
			{query: "?at=now&namespace=default", found: 1},
			{query: "?namespace=default", token: "Bearer pods", found: 1, denied: true},
			{query: "?namespace=other", token: "Bearer pods", nobody: true},
			{query: "", token: "Bearer somebody", nobody: true},
			{query: "?namespace=default", token: "Bearer nodes", nobody: true},
		} {
			what := fmt.Sprintf("%q for %q, closed %v", test.query, test.token, f.closed)
			w := f.ofFindings(test.query, bearing(test.token)...)
			if test.nobody {
				if s, _ := statusOf(t, w); s.Code != http.StatusForbidden || !strings.Contains(s.Message, "you may list none") {
					t.Errorf("%s: %+v", what, s)
				}
				continue
			}
			var got api.Findings
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", what, w.Code, w.Body)
			}
			crashes := 0
			for _, item := range got.Items {
				if item.Rule == "crash" && item.Severity == api.SeverityCritical && !item.SinceKnown {
					crashes++
				}
			}
			if crashes != test.found || (len(got.Denied) > 0) != test.denied || slices.Contains(got.NotRecorded, "pods") ||
				!slices.Equal(got.LeftOut, []string{"what changed before: " + lacks + " (the disk is full)"}) {
				t.Errorf("%s: %+v", what, got)
			}
		}
		if s, _ := statusOf(t, f.ofFindings("?at=10m")); s.Code != http.StatusServiceUnavailable || s.Message != "nothing is recorded: the disk is full" {
			t.Errorf("the past: %+v", s)
		}
	}
	clear(cached)
	if s, _ := statusOf(t, f.ofFindings("")); s.Code != http.StatusServiceUnavailable || s.Message != "nothing is recorded: the disk is full" {
		t.Errorf("without the cache: %+v", s)
	}
}

// TestFindingsInOutage: that the API server does not answer is critical, and comes first; not of a
// moment before. What failed when it answered last does not recover meanwhile.
func TestFindingsInOutage(t *testing.T) {
	g := newGuarded()
	f := newFixtureAt(t, g)
	const crashed = `{kind: Pod, apiVersion: v1, status: {phase: Running, containerStatuses: [{name: main, state: {terminated: {exitCode: 1}}}]}}`
	st := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/a", 90, crashed))
	now := time.Now()
	again := fmt.Sprintf("{kind: Pod, apiVersion: v1, status: {phase: Running, containerStatuses: [{name: main, ready: true, restartCount: 1, state: {running: {startedAt: %[1]q}}, lastState: {terminated: {exitCode: 1, finishedAt: %[1]q}}}]}}", now.UTC().Format(time.RFC3339))
	if err := st.Append([]history.Event{{Type: kube.Added, At: now, Object: pasttest.Thing(t, "default/b", 191, again)}}, 200, now); err != nil {
		t.Fatal(err)
	}
	if all := f.findings("").Items; len(all) != 2 || all[0].Rule != "crash" {
		t.Fatalf("%+v", all)
	}
	g.down.Store(true)
	if err := f.handler.Upstream.Check(t.Context()); err == nil {
		t.Fatal("the API server answers")
	}
	last := f.handler.Upstream.LastAnswer()
	f.ahead = time.Minute
	if got := ask[api.Failing](f, "/failing/api/v1/namespaces/default/pods/b"); !got.Failing {
		t.Errorf("%+v", got)
	}
	all := f.findings("").Items
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	one := all[0]
	if one.Severity != api.SeverityCritical || one.Kind != "APIServer" || !strings.HasPrefix(one.Title, "does not answer: the state is the last known one") || !one.SinceKnown || !one.Since.Equal(last) || len(one.Messages) != 1 {
		t.Errorf("since %v: %+v", last, one)
	}
	for _, item := range f.findings("?at=" + f.when(150)).Items {
		if item.Kind == "APIServer" {
			t.Errorf("of a moment before: %+v", item)
		}
	}
}

// TestFindingsOfUnobserved: while a resource is not observed, what failed of it when it was is
// listed, as of then, after the time of that; nothing recovers, and nothing fails, by waiting.
func TestFindingsOfUnobserved(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	now := time.Now()
	ended := now.Add(-2 * time.Minute).UTC().Format(time.RFC3339)
	pod := func(name, status string) *scan.Object {
		return pasttest.Thing(t, kube.MakeKey("default", name), 110, "{kind: Pod, apiVersion: v1, metadata: {uid: "+name+"}, spec: {nodeName: n1}, status: "+status+"}")
	}
	pods := f.Stream(pasttest.Pods, 100, 0)
	if err := pods.Append([]history.Event{
		{Type: kube.Added, At: now.Add(-2 * time.Minute), Object: pod("crashed", fmt.Sprintf("{phase: Running, containerStatuses: [{name: main, ready: true, restartCount: 1, state: {running: {startedAt: %[1]q}}, lastState: {terminated: {exitCode: 1, finishedAt: %[1]q}}}]}", ended))},
		{Type: kube.Added, At: now.Add(-2 * time.Minute), Object: pod("starting", fmt.Sprintf("{phase: Pending, conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: %q}]}", ended)).At(111)},
	}, 120, now.Add(-2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	nodes := f.Stream(pasttest.Nodes, 100, 0) // n1 was deleted, or never seen
	if err := nodes.Append(nil, 120, now); err != nil {
		t.Fatal(err)
	}
	f.unsynced = past.ErrUnwatched
	f.synced = []kube.Resource{pasttest.Nodes}
	got := f.findings("?namespace=default").Items
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	want := "nothing newer is recorded: the last known state is shown, that of " + pods.Head().At.UTC().Format(time.RFC3339)
	if one := got[0]; one.Rule != "unobserved" || one.Severity != api.SeverityWarning || one.Title != "1 resource not observed: pods" || !one.Since.Equal(pods.Head().At) || !slices.Equal(one.Messages, []string{want}) {
		t.Errorf("%+v", one)
	}
	if one := got[1]; one.Rule != "crash" || one.Severity != api.SeverityCritical || one.Name != "crashed" {
		t.Errorf("%+v", one)
	}
	f.synced = nil
	if got := f.findings("").Items; len(got) != 2 || got[0].Severity != api.SeverityCritical || got[0].Title != "2 resources not observed: nodes, pods" {
		t.Errorf("without anything: %+v", got)
	}
	if got := f.findings("?at=10s").Items; len(got) != 1 || got[0].Severity != api.SeverityWarning {
		t.Errorf("of the past: %+v", got)
	}
}

// snapshotOf returns a snapshot of a timeline with some objects.
func snapshotOf(t *testing.T, objects ...*scan.Object) *timeline.Snapshot {
	t.Helper()
	line := timeline.New(timeline.Options{})
	line.Reset(&scan.List{RV: 200, Items: objects})
	return &line.View().Snapshot
}

// TestFindingsSince: of each Pod of a finding the history is asked since when it fails.
func TestFindingsSince(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	const pod = `{kind: Pod, apiVersion: v1, metadata: {uid: %[1]s, ownerReferences: [{kind: ReplicaSet, name: web-1, apiVersion: apps/v1, controller: true, uid: r}]}, status: {phase: Running, containerStatuses: [{name: main%s}]}}`
	var all []*scan.Object
	for i := range 5 {
		all = append(all, pasttest.Thing(t, kube.MakeKey("default", fmt.Sprint("web-", i)), 90+uint64(i), fmt.Sprintf(pod, fmt.Sprint("u", i), "")))
	}
	pods := f.Stream(pasttest.Pods, 100, 0, all...)
	for _, n := range []uint64{4, 0, 1, 2, 3} { // the last one by its name long before the others
		rv := 110 + 201*((n+1)%5)
		f.Event(pods, kube.Modified, kube.MakeKey("default", fmt.Sprint("web-", n)), rv, fmt.Sprintf(pod, fmt.Sprint("u", n), ", state: {terminated: {exitCode: 1}}"))
	}
	got := f.findings("").Items
	if len(got) != 1 || !got[0].Since.Equal(f.At(10)) || !got[0].SinceKnown || got[0].Others != 4 || !got[0].OthersSince.Equal(f.At(211)) {
		t.Errorf("%+v", got)
	}
}

// TestFindingsSinceStays: since when a Pod fails does not depend on when other Pods change.
func TestFindingsSinceStays(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	pods := f.Stream(pasttest.Pods, 100, 0)
	stamp := f.At(10).UTC().Format(time.RFC3339)
	waiting := func(reason string) string {
		return "phase: Pending, conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: " + stamp + "}], containerStatuses: [{name: main, state: {waiting: {reason: " + reason + "}}}]"
	}
	rv := uint64(110)
	for rule, status := range map[string]string{
		"crash": "phase: Running, containerStatuses: [{name: main, state: {terminated: {exitCode: 1, finishedAt: " + stamp + "}}}]",
		"image": waiting("ErrImagePull"), "start": waiting("CreateContainerConfigError"), "creating": waiting("ContainerCreating"),
		"not-ready":   "phase: Running, conditions: [{type: Ready, status: 'False', lastTransitionTime: " + stamp + "}]",
		"unscheduled": "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, lastTransitionTime: " + stamp + "}]",
	} {
		node := ", spec: {nodeName: n1}"
		if rule == "unscheduled" {
			node = ""
		}
		f.Event(pods, kube.Added, kube.MakeKey("default", rule), rv, "{kind: Pod, apiVersion: v1, metadata: {uid: "+rule+"}"+node+", status: {"+status+"}}")
		rv++
	}
	scaled := func(replicas int) string {
		return fmt.Sprintf(`{kind: Deployment, apiVersion: apps/v1, metadata: {generation: %d, managedFields: [{manager: kubectl, subresource: scale}]}, spec: {replicas: %d}, status: {observedGeneration: 1}}`, replicas, replicas)
	}
	deployments := f.Stream(pasttest.Deployments, 100, 0, pasttest.Thing(t, "default/controller", 90, scaled(1)))
	f.Event(deployments, kube.Modified, "default/controller", 110, scaled(2))
	since := func(seconds float64) map[string]time.Duration {
		all := map[string]time.Duration{}
		for _, one := range f.findings("?at=" + f.when(seconds)).Items {
			if all[one.Rule] = one.Since.Sub(f.At(0)).Round(time.Second); one.Name != one.Rule || !one.SinceKnown {
				t.Errorf("%+v", one)
			}
		}
		return all
	}
	f.Event(pods, kube.Added, "default/other", 200, "{kind: Pod, apiVersion: v1, status: {phase: Running}}")
	before := since(120)
	f.Event(pods, kube.Deleted, "default/other", 250, "{kind: Pod, apiVersion: v1, status: {phase: Running}}")
	if after := since(220); len(before) != 7 || before["controller"] != 10*time.Second || !maps.Equal(before, after) {
		t.Errorf("%v, then %v", before, after)
	}
}

// TestFindingsVanished: Pods that a status still has are missing for a minute before they are
// found, since the last was deleted; not while the controller makes others.
func TestFindingsVanished(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	pod := func(uid string) string {
		return "{kind: Pod, apiVersion: v1, metadata: {uid: " + uid + ", ownerReferences: [{kind: ReplicaSet, apiVersion: apps/v1, name: web, uid: rs, controller: true}]}, status: {phase: Running}}"
	}
	pods := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/a", 80, pod("a")), pasttest.Thing(t, "default/b", 81, pod("b")))
	sets := kube.Resource{Group: "apps", Version: "v1", Name: "replicasets"}
	f.Stream(sets, 100, 0, pasttest.Thing(t, "default/web", 90, "{kind: ReplicaSet, apiVersion: apps/v1, metadata: {uid: rs, creationTimestamp: "+f.when(-3600)+"}, spec: {replicas: 2}, status: {replicas: 2}}"))
	f.Event(pods, kube.Deleted, "default/a", 110, pod("a"))
	f.Event(pods, kube.Deleted, "default/b", 115, pod("b"))
	f.Event(pods, kube.Added, "default/other", 200, "{kind: Pod, apiVersion: v1, status: {phase: Running}}")
	for seconds, want := range map[float64]string{50: "", 80: "0 of 2 Pods exist, and its controller does not act"} {
		got := ""
		for _, one := range f.findings("?at=" + f.when(seconds)).Items {
			got += one.Title
			if !one.Since.Equal(f.At(15)) || one.Rule != "vanished" {
				t.Errorf("%+v", one)
			}
		}
		if got != want {
			t.Errorf("after %v seconds: %q, want %q", seconds, got, want)
		}
	}
}

// TestFindingsBeforeRecord: what failed already when the record began names that begin, not its own.
func TestFindingsBeforeRecord(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	f.Stream(pasttest.Nodes, 100, 60, pasttest.Thing(t, "n1", 80, "{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: Unknown, lastTransitionTime: "+f.when(0)+"}]}}"))
	got := f.findings("?at=" + f.when(70)).Items
	if len(got) != 1 || !got[0].Since.Equal(f.At(0).Truncate(time.Second)) || !got[0].RecordedSince.Equal(f.At(60)) {
		t.Errorf("recorded since %v: %+v", f.At(60), got)
	}
}

// TestFindingsBeforeEpoch: what was changed just before is also what has changed before an epoch, or
// until its begin.
func TestFindingsBeforeEpoch(t *testing.T) {
	const config = `{kind: ConfigMap, apiVersion: v1, data: {a: "%s"}}`
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	configmaps := kube.Resource{Version: "v1", Name: "configmaps"}
	first := f.Stream(configmaps, 100, 0, pasttest.Thing(t, "default/settings", 80, fmt.Sprintf(config, "1")))
	f.Event(first, kube.Modified, "default/settings", 110, fmt.Sprintf(config, "2"))
	second, err := f.Store.NewEpoch(configmaps)
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(second, 50, 20, pasttest.Thing(t, "default/settings", 40, fmt.Sprintf(config, "3")))
	f.Events(second, 160)
	pod := func(more string) string {
		return `{kind: Pod, apiVersion: v1, spec: {volumes: [{name: c, configMap: {name: settings}}], containers: [{name: main}]}, status: {phase: Running` + more + `}}`
	}
	pods := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/a", 90, pod("")))
	f.Event(pods, kube.Modified, "default/a", 130, pod(fmt.Sprintf(`, containerStatuses: [{name: main, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error, finishedAt: %q}}}]`, f.At(30).UTC().Format(time.RFC3339))))
	f.Events(pods, 160)
	var got []string
	for _, item := range f.findings("?at=" + f.when(40)).Items {
		for _, c := range item.Before {
			got = append(got, fmt.Sprintf("%v %s not before %v", c.Time.Sub(f.At(0)), c.Name, c.NotBefore.Sub(f.At(0)) == 10*time.Second))
		}
	}
	if want := []string{"20s settings not before true", "10s settings not before false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFindingsDeletedNode: a Node that does not exist does not since it was deleted.
func TestFindingsDeletedNode(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	const node = "{kind: Node, apiVersion: v1}"
	nodes := f.Stream(pasttest.Nodes, 100, 0, pasttest.Thing(t, "n1", 80, node))
	f.Event(nodes, kube.Deleted, "n1", 120, node)
	f.Events(nodes, 150)
	pods := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/a", 90, "{kind: Pod, apiVersion: v1, spec: {nodeName: n1}, status: {phase: Running}}"))
	f.Events(pods, 150)
	got := f.findings("?at=" + f.when(50)).Items
	if len(got) != 1 || got[0].Rule != "node-deleted" || !got[0].Since.Equal(f.At(20)) || !got[0].SinceKnown || len(got[0].Before) != 1 {
		t.Errorf("%+v", got)
	}
}
