// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

const storyOfWeb = historyapi.StoryPath + "/apis/apps/v1/namespaces/default/deployments/web"

// storyFixture has a Deployment with a Pod, what the Pod uses and runs on, an autoscaler, a
// quota, Events, and other objects that have nothing to do with it.
func storyFixture(t *testing.T, allowed func(r *fakeapi.Request, a authorizationv1.ResourceAttributes) bool) *fixture {
	t.Helper()
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allowed}))
	type object struct {
		key  kube.Key
		text string
	}
	thing := func(key kube.Key, text string) object { return object{key, text} }
	write := func(r kube.Resource, objects ...object) {
		st := f.Stream(r, 100, 0)
		for i, o := range objects { // the first one second after the start, and so on
			f.Event(st, kube.Added, o.key, uint64(101+i), o.text)
		}
		f.Events(st, 200)
	}
	owned := func(kind, of, more string) string {
		return fmt.Sprintf(`{kind: %s, apiVersion: v1, metadata: {ownerReferences: [{kind: X, name: x, uid: %s, controller: true}], labels: {app: web}}, spec: {%s}}`, kind, of, more)
	}
	write(pasttest.Deployments, thing("default/web", `{kind: Deployment, apiVersion: apps/v1, metadata: {uid: d}}`), thing("default/other", `{kind: Deployment, apiVersion: apps/v1}`))
	write(kube.Resource{Group: "apps", Version: "v1", Name: "replicasets"}, thing("default/web-a", strings.Replace(owned("ReplicaSet", "d", ""), "metadata: {", "metadata: {uid: r, ", 1)))
	write(pasttest.Pods, thing("default/web-a-1", strings.Replace(owned("Pod", "r", "nodeName: n1, volumes: [{name: a, configMap: {name: settings}}]"), "metadata: {", "metadata: {uid: p, ", 1)),
		thing("default/other-1", `{kind: Pod, apiVersion: v1, spec: {nodeName: n2}}`), thing("elsewhere/web-a-1", `{kind: Pod, apiVersion: v1, spec: {nodeName: n1}}`))
	write(pasttest.Nodes, thing("n1", `{kind: Node, apiVersion: v1}`), thing("n2", `{kind: Node, apiVersion: v1}`))
	write(kube.Resource{Version: "v1", Name: "namespaces"}, thing("default", `{kind: Namespace, apiVersion: v1}`), thing("elsewhere", `{kind: Namespace, apiVersion: v1, metadata: {deletionTimestamp: "2026-01-02T14:00:10Z"}}`))
	write(kube.Resource{Version: "v1", Name: "configmaps"}, thing("default/settings", `{kind: ConfigMap, apiVersion: v1}`), thing("default/unused", `{kind: ConfigMap, apiVersion: v1}`), thing("default/unused-2", `{kind: ConfigMap, apiVersion: v1}`))
	write(kube.Resource{Version: "v1", Name: "resourcequotas"}, thing("default/quota", `{kind: ResourceQuota, apiVersion: v1}`), thing("elsewhere/quota", `{kind: ResourceQuota, apiVersion: v1}`))
	write(kube.Resource{Group: "policy", Version: "v1", Name: "poddisruptionbudgets"}, thing("default/web", `{kind: PodDisruptionBudget, apiVersion: policy/v1, spec: {selector: {matchLabels: {app: web}}}}`),
		thing("default/other", `{kind: PodDisruptionBudget, apiVersion: policy/v1, spec: {selector: {matchLabels: {app: other}}}}`))
	write(kube.Resource{Group: "autoscaling", Version: "v2", Name: "horizontalpodautoscalers"}, thing("default/hpa", `{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2, spec: {scaleTargetRef: {kind: Deployment, name: web}}}`),
		thing("default/hpb", `{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2, spec: {scaleTargetRef: {kind: Deployment, name: other}}}`))
	about := func(kind, name, uid string) string {
		return fmt.Sprintf(`{kind: Event, apiVersion: v1, type: Normal, reason: R, message: m, involvedObject: {kind: %s, namespace: default, name: %s, uid: %s}}`, kind, name, uid)
	}
	write(kube.Resource{Version: "v1", Name: "events"}, thing("default/e1", about("Pod", "web-a-1", "p")), thing("default/e2", about("Pod", "other-1", "uid-of-other-1")),
		thing("default/e3", `{kind: Event, apiVersion: v1, reason: R, message: m, involvedObject: {kind: Node, name: n1, uid: n1}}`))
	return f
}

// subjects returns what a story is about, in order.
func subjects(s api.Story) (all []string) {
	for _, ep := range s.Episodes {
		for _, e := range ep.Entries {
			if what := e.Kind + "/" + e.Name; !slices.Contains(all, what) {
				all = append(all, what)
			}
			if e.Type == api.EventType {
				all = append(all, "Event about "+e.Kind+"/"+e.Name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// story asks for a story.
func (f *fixture) story(path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// TestStory: a story is about what an object owns, runs on, uses, and is limited by, and
// about nothing else.
func TestStory(t *testing.T) {
	f := storyFixture(t, nil)
	want := []string{"ConfigMap/settings", "Deployment/web", "Event about Node/n1", "Event about Pod/web-a-1", "HorizontalPodAutoscaler/hpa", "Node/n1", "Pod/web-a-1", "PodDisruptionBudget/web", "ReplicaSet/web-a", "ResourceQuota/quota"}
	s := decoded[api.Story](t, f.story(storyOfWeb+"?since=2h"))
	if got := subjects(s); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Kind != "Deployment" || len(s.Denied) != 0 || len(s.LeftOut) != 0 || !slices.Equal(s.NotRecorded, []string{"daemonsets.apps", "jobs.batch", "persistentvolumeclaims", "secrets", "statefulsets.apps"}) {
		t.Errorf("%+v", s)
	}
	if len(s.Unobserved) == 0 || s.Unobserved[0].Reason != api.BeforeRecord {
		t.Errorf("unobserved: %+v", s.Unobserved)
	}
	// From the Pod upward: not its siblings' autoscaler's targets, but what controls it.
	pod := decoded[api.Story](t, f.story(historyapi.StoryPath+"/api/v1/namespaces/default/pods/web-a-1?since=2h"))
	if got := subjects(pod); !slices.Equal(got, want) {
		t.Errorf("of the Pod: %q", got)
	}
	hpa := decoded[api.Story](t, f.story(historyapi.StoryPath+"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/hpa?since=2h"))
	if got := subjects(hpa); !slices.Equal(got, want) {
		t.Errorf("of the autoscaler: %q", got)
	}
	// A Node's Pods are of all namespaces.
	node := decoded[api.Story](t, f.story(historyapi.StoryPath+"/api/v1/nodes/n1?since=2h"))
	if got := subjects(node); !slices.Equal(got, []string{"Event about Node/n1", "Event about Pod/web-a-1", "Node/n1", "Pod/web-a-1", "PodDisruptionBudget/web"}) || node.Objects != 6 {
		t.Errorf("of the Node: %d %q", node.Objects, got)
	}
	// With a Namespace, all that is in it is deleted.
	other := decoded[api.Story](t, f.story(historyapi.StoryPath+"/api/v1/namespaces/elsewhere/pods/web-a-1?since=2h"))
	if got := subjects(other); !slices.Equal(got, []string{"Event about Node/n1", "Namespace/elsewhere", "Node/n1", "Pod/web-a-1"}) {
		t.Errorf("in a Namespace that is deleted: %q", got)
	}
	// A Namespace has all that is in it.
	all := decoded[api.Story](t, f.story(historyapi.StoryPath+"/api/v1/namespaces/elsewhere?since=2h"))
	if got := subjects(all); !slices.Equal(got, []string{"Event about Node/n1", "Namespace/elsewhere", "Node/n1", "Pod/web-a-1", "ResourceQuota/quota"}) {
		t.Errorf("of a Namespace: %q", got)
	}
	short := decoded[api.Story](t, f.story(storyOfWeb+"?since="+f.when(0.5)+"&until="+f.when(1.5)))
	if got := subjects(short); slices.Contains(got, "Node/n2") || !short.To.Equal(f.At(1.5)) || !short.From.Equal(f.At(.5)) || !slices.Contains(got, "Deployment/web") {
		t.Errorf("of a second: %+v", short)
	}
	for path, code := range map[string]int{
		storyOfWeb + "?since=now":              http.StatusBadRequest,
		storyOfWeb + "?since=x":                http.StatusBadRequest,
		storyOfWeb + "?since=rv:50":            http.StatusGone,
		storyOfWeb + "?limit=1":                http.StatusBadRequest,
		storyOfWeb + "?until=" + f.when(0.2):   http.StatusNotFound, // it did not exist
		storyOfWeb + "x":                       http.StatusNotFound,
		historyapi.StoryPath:                   http.StatusNotFound,
		historyapi.StoryPath + "/":             http.StatusNotFound,
		historyapi.StoryPath + "/api/v1/pods":  http.StatusBadRequest,
		historyapi.StoryPath + "/api/v1/x/y":   http.StatusNotFound,
		historyapi.Path + "/story/api/v1/x/y":  http.StatusNotFound,
		historyapi.StoryPath + "x/api/v1/x/y/": http.StatusNotFound,
	} {
		if s, _ := statusOf(t, f.story(path)); int(s.Code) != code {
			t.Errorf("%s: %+v", path, s)
		}
	}
}

// TestStoryOfOrphan: what owned an object is in its story, although its newest version does not
// name it.
func TestStoryOfOrphan(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{}))
	deployments, sets := f.Stream(pasttest.Deployments, 100, 0), f.Stream(kube.Resource{Group: "apps", Version: "v1", Name: "replicasets"}, 100, 0)
	const deployment, set = `{kind: Deployment, apiVersion: apps/v1, metadata: {uid: d}}`, `{kind: ReplicaSet, apiVersion: apps/v1, metadata: {uid: r%s}}`
	f.Event(deployments, kube.Added, "default/web", 101, deployment)
	f.Event(sets, kube.Added, "default/web-a", 102, fmt.Sprintf(set, ", ownerReferences: [{kind: Deployment, name: web, uid: d, controller: true}]"))
	f.Event(sets, kube.Modified, "default/web-a", 103, fmt.Sprintf(set, ""))
	f.Event(deployments, kube.Deleted, "default/web", 104, deployment)
	f.Events(deployments, 200)
	f.Events(sets, 200)
	s := decoded[api.Story](t, f.story(historyapi.StoryPath+"/apis/apps/v1/namespaces/default/replicasets/web-a?since=2h"))
	if !slices.ContainsFunc(s.Episodes, func(ep api.Episode) bool { return ep.Title == "Deployment web deleted" }) {
		t.Errorf("%+v", s.Episodes)
	}
}

// TestStoryOfCaller: what the caller may not list is left out of a story, which says so; that
// is asked for the namespace of the story.
func TestStoryOfCaller(t *testing.T) {
	f := storyFixture(t, func(r *fakeapi.Request, a authorizationv1.ResourceAttributes) bool {
		return r.Header.Get("Authorization") == "Bearer gateway" || a.Namespace == "default" && a.Resource != "configmaps"
	})
	s := decoded[api.Story](t, f.story(storyOfWeb+"?since=2h", "Authorization", "Bearer somebody"))
	if got := subjects(s); !slices.Equal(got, []string{"Deployment/web", "Event about Pod/web-a-1", "HorizontalPodAutoscaler/hpa", "Pod/web-a-1", "PodDisruptionBudget/web", "ReplicaSet/web-a", "ResourceQuota/quota"}) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(s.Denied, []string{"configmaps", "namespaces", "nodes"}) {
		t.Errorf("denied: %q", s.Denied)
	}
	for path, code := range map[string]int{
		strings.Replace(storyOfWeb, "default", "elsewhere", 1): http.StatusForbidden,
		historyapi.StoryPath + "/api/v1/nodes/n1":              http.StatusForbidden,
	} {
		if s, _ := statusOf(t, f.story(path, "Authorization", "Bearer somebody")); int(s.Code) != code {
			t.Errorf("%s: %+v", path, s)
		}
	}
}

// TestStoryUndecided: without a decision of the API server there is no story, not a part of it.
func TestStoryUndecided(t *testing.T) {
	f, g := widgets(t)
	g.mute.Store(true)
	for _, token := range []string{"", "Bearer somebody"} {
		if s, _ := statusOf(t, f.story(historyapi.StoryPath+"/apis/example.com/v1/namespaces/default/widgets/w", bearing(token)...)); s.Code != http.StatusServiceUnavailable {
			t.Errorf("%+v", s)
		}
	}
	g.mute.Store(false)
	if w := f.story(historyapi.StoryPath + "/apis/example.com/v1/namespaces/default/widgets/w?since=2h"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestStoryLimits: what a limit leaves out is said.
func TestStoryLimits(t *testing.T) {
	defer historyapi.SetStoryLimits(3, 2, 1)()
	f := storyFixture(t, nil)
	s := decoded[api.Story](t, f.story(storyOfWeb+"?since=2h"))
	if !slices.ContainsFunc(s.LeftOut, func(l string) bool { return strings.Contains(l, "objects, over the limit of 3") }) ||
		!slices.ContainsFunc(s.LeftOut, func(l string) bool { return strings.Contains(l, "versions, over the limit of 2") }) ||
		!slices.ContainsFunc(s.LeftOut, func(l string) bool { return strings.Contains(l, "newest 1 versions of Events") }) || s.Versions != 2 {
		t.Errorf("%d versions; %q", s.Versions, s.LeftOut)
	}
}

// TestStoryListed: that there are too many objects of one resource leaves out none of another.
func TestStoryListed(t *testing.T) {
	historyapi.SetMaxListed(t, 2)
	f := storyFixture(t, nil) // with three ConfigMaps
	s := decoded[api.Story](t, f.story(storyOfWeb+"?since=2h"))
	if !slices.Contains(subjects(s), "Pod/web-a-1") || !slices.Contains(s.LeftOut, "related objects were looked for among the first 2 of each resource only") {
		t.Errorf("about %v; left out %q", subjects(s), s.LeftOut)
	}
}

// TestStoryOfNewEvents: Events that are recorded as those of events.k8s.io are in a story.
func TestStoryOfNewEvents(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{}))
	deployments := f.Stream(pasttest.Deployments, 100, 0)
	f.Event(deployments, kube.Added, "default/web", 101, `{kind: Deployment, apiVersion: apps/v1, metadata: {uid: d}}`)
	f.Events(deployments, 200)
	events := f.Stream(kube.Resource{Group: "events.k8s.io", Version: "v1", Name: "events"}, 100, 0)
	f.Event(events, kube.Added, "default/e", 102, `{kind: Event, apiVersion: events.k8s.io/v1, type: Warning, reason: R, note: m, regarding: {kind: Deployment, namespace: default, name: web, uid: d}}`)
	f.Events(events, 200)
	s := decoded[api.Story](t, f.story(storyOfWeb+"?since=2h"))
	if !slices.Contains(subjects(s), "Event about Deployment/web") || slices.Contains(s.NotRecorded, "events") {
		t.Errorf("about %v; not recorded %v", subjects(s), s.NotRecorded)
	}
}

// TestStoryGap: an entry that was found after a gap says since when it may have happened.
func TestStoryGap(t *testing.T) {
	f := newFixture(t)
	s := decoded[api.Story](t, f.story(storyOfWeb+"?since=2h"))
	found := false
	for _, ep := range s.Episodes {
		for _, e := range ep.Entries {
			found = found || e.ResourceVersion == "165" && e.Inferred && e.NotBefore.Before(e.Time) && !e.NotBefore.IsZero()
		}
	}
	if !found || !slices.ContainsFunc(s.Unobserved, func(u api.UnobservedSpan) bool { return u.Reason == api.InGap }) {
		t.Errorf("%+v", s)
	}
}

// TestStoryCut: what was so when the record begins is not told as of the time before, nor what was
// last observed as of the end of the story, which is in a gap.
func TestStoryCut(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	st := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/a", 90, `{kind: Pod, apiVersion: v1, status: {phase: Running, containerStatuses: [{name: main, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}}`))
	f.Events(st, 200)
	s := decoded[api.Story](t, f.story(historyapi.StoryPath+"/api/v1/namespaces/default/pods/a?since="+f.when(-600)+"&until="+f.when(90)))
	if len(s.Episodes) != 1 || !s.Episodes[0].From.Equal(f.At(0)) || s.Episodes[0].BegunBefore != api.RecordBegin {
		t.Errorf("the record begins at %v: %+v", f.At(0), s.Episodes)
	}
	if err := st.AppendGap(nil, 300, f.At(200)); err != nil {
		t.Fatal(err)
	}
	for until, want := range map[float64]string{90: "still so at the end of the story", 150: "still so when it was last observed", 250: "still so at the end of the story"} {
		s := decoded[api.Story](t, f.story(historyapi.StoryPath+"/api/v1/namespaces/default/pods/a?since="+f.when(10)+"&until="+f.when(until)))
		if len(s.Episodes) != 1 || !strings.HasSuffix(s.Episodes[0].Title, want) || !s.To.Equal(f.At(until)) {
			t.Errorf("until %v: %+v, want %q", until, s, want)
		}
	}
	// Its begin is in the gap, too: no edge of it is an observation.
	s = decoded[api.Story](t, f.story(historyapi.StoryPath+"/api/v1/namespaces/default/pods/a?since="+f.when(120)+"&until="+f.when(150)))
	if len(s.Episodes) != 0 || !api.NothingKnown(s.Unobserved, []string{s.Resource}, s.From, s.To) {
		t.Errorf("within the gap: %+v", s)
	}
}

// TestStoryBetweenEpochs: what differs between two epochs happened between them.
func TestStoryBetweenEpochs(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	pod := func(name kube.Key, rv uint64, phase string) *scan.Object {
		return pasttest.Thing(t, name, rv, `{kind: Pod, apiVersion: v1, status: {phase: `+phase+`}}`)
	}
	st := f.Stream(pasttest.Pods, 100, 0, pod("default/gone", 90, "Running"), pod("default/same", 45, "Running"), pod("default/other", 92, "Pending"))
	f.Events(st, 110)
	second, err := f.Store.NewEpoch(pasttest.Pods)
	if err != nil {
		t.Fatal(err)
	}
	f.Begin(second, 50, 200, pod("default/same", 45, "Running"), pod("default/new", 40, "Running"), pod("default/other", 41, "Running"))
	f.Events(second, 310)
	for name, want := range map[string]string{"gone": "DELETED deleted", "same": "", "new": "ADDED created", "other": "MODIFIED Pending → Running"} {
		s := decoded[api.Story](t, f.story(historyapi.StoryPath+"/api/v1/namespaces/default/pods/"+name+"?since="+f.when(5)+"&until="+f.when(209)))
		got := ""
		for _, e := range s.Episodes {
			for _, entry := range e.Entries {
				got += entry.Type + " " + strings.Join(entry.What, "; ")
				if !entry.Inferred || !entry.NotBefore.Equal(f.At(10)) || !entry.Time.Equal(f.At(200)) {
					t.Errorf("%s: %+v", name, entry)
				}
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
