// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"fmt"
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
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// TestStoryBehind: of a Pod that was preempted, the story has the Pod that it made room for,
// and its owners, in another namespace; of a refused Pod, the workloads that grew. A caller who
// may not read other namespaces has neither of the former.
func TestStoryBehind(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: func(r *fakeapi.Request, a authorizationv1.ResourceAttributes) bool {
		return r.Header.Get("Authorization") == "Bearer gateway" || a.Namespace == "default"
	}}))
	const uid = "01234567-89ab-cdef-0123-456789abcdef"
	deployments := f.Stream(pasttest.Deployments, 100, 0)
	f.Event(deployments, kube.Added, "default/web", 101, `{kind: Deployment, apiVersion: apps/v1, metadata: {uid: d}, spec: {replicas: 2}}`)
	f.Event(deployments, kube.Added, "default/grown", 102, `{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 2}}`)
	f.Event(deployments, kube.Added, "default/shrunk", 103, `{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 2}}`)
	f.Event(deployments, kube.Added, "elsewhere/search", 104, `{kind: Deployment, apiVersion: apps/v1, metadata: {uid: s}}`)
	f.Event(deployments, kube.Added, "elsewhere/other", 105, `{kind: Deployment, apiVersion: apps/v1, metadata: {uid: o}}`)
	f.Event(deployments, kube.Modified, "default/grown", 106, `{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 3}}`)
	f.Event(deployments, kube.Modified, "default/shrunk", 107, `{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 1}}`)
	f.Events(deployments, 200)
	sets := f.Stream(kube.Resource{Group: "apps", Version: "v1", Name: "replicasets"}, 100, 0)
	f.Event(sets, kube.Added, "elsewhere/search-a", 101, `{kind: ReplicaSet, apiVersion: apps/v1, metadata: {uid: r, ownerReferences: [{kind: Deployment, name: search, uid: s, controller: true}]}}`)
	f.Events(sets, 200)
	pods := f.Stream(pasttest.Pods, 100, 0)
	f.Event(pods, kube.Added, "default/web-1", 101, `{kind: Pod, apiVersion: v1, metadata: {uid: p, ownerReferences: [{kind: Deployment, name: web, uid: d, controller: true}]}}`)
	f.Event(pods, kube.Added, "elsewhere/search-a-1", 102, `{kind: Pod, apiVersion: v1, metadata: {uid: `+uid+`, ownerReferences: [{kind: ReplicaSet, name: search-a, uid: r, controller: true}]}}`)
	f.Event(pods, kube.Added, "elsewhere/other-1", 103, `{kind: Pod, apiVersion: v1, metadata: {uid: x}}`)
	f.Events(pods, 200)
	events := f.Stream(kube.Resource{Version: "v1", Name: "events"}, 100, 0)
	f.Event(events, kube.Added, "default/e1", 101, `{kind: Event, apiVersion: v1, type: Normal, reason: Preempted, message: Preempted by pod `+uid+` on node n1, involvedObject: {kind: Pod, namespace: default, name: web-1, uid: p}}`)
	f.Event(events, kube.Added, "default/e2", 102, `{kind: Event, apiVersion: v1, type: Warning, reason: FailedCreate, message: "pods x is forbidden: exceeded quota: small, requested: pods=1", involvedObject: {kind: Deployment, namespace: default, name: web, uid: d}}`)
	f.Events(events, 200)
	// What these changed is named where it matters; their own lives are no episodes of this story.
	own := []string{"Deployment/web", "Event about Deployment/web", "Event about Pod/web-1", "Pod/web-1"}
	s := decoded[api.Story](t, f.story(storyOfWeb+"?since=2h"))
	if got := subjects(s); !slices.Equal(got, own) || s.Objects != len(own)+4 { // grown, search, search-a, and search-a-1
		t.Errorf("%q of %d objects, want %q", got, s.Objects, own)
	}
	s = decoded[api.Story](t, f.story(storyOfWeb+"?since=2h", "Authorization", "Bearer somebody"))
	if got := subjects(s); !slices.Equal(got, own) || s.Objects != len(own)+1 || !slices.Equal(s.Denied, []string{"pods of other namespaces"}) {
		t.Errorf("of a caller of one namespace: %q of %d objects, want %q; denied: %q", got, s.Objects, own, s.Denied)
	}
}

// TestBeforeFindings: what became of Nodes is among the changes before: of that of a Pod that
// fails, of one that Pods of its workload have left, and of those that take no Pods. So is what was
// observed later, and may have happened before; and what was not observed is said.
func TestBeforeFindings(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	stamp := func(seconds float64) string { return f.At(seconds).UTC().Format(time.RFC3339) }
	node := func(ready, spec string) string {
		return `{kind: Node, apiVersion: v1, spec: {` + spec + `}, status: {conditions: [{type: Ready, status: "` + ready + `"}]}}`
	}
	pod := func(node, status string) string {
		return `{kind: Pod, apiVersion: v1, metadata: {ownerReferences: [{kind: ReplicaSet, name: web-1, uid: r, controller: true}]},
			spec: {nodeName: "` + node + `", volumes: [{name: c, configMap: {name: settings}}, {name: s, secret: {secretName: key}}]}, status: {` + status + `}}`
	}
	nodes := f.Stream(pasttest.Nodes, 100, 0)
	for i, name := range []kube.Key{"n1", "n2", "n3"} {
		f.Event(nodes, kube.Added, name, uint64(101+i), node("True", ""))
	}
	if err := nodes.AppendGap(nil, 110, f.At(10)); err != nil { // since 3
		t.Fatal(err)
	}
	f.Event(nodes, kube.Modified, "n3", 115, node("True", "unschedulable: true"))
	f.Event(nodes, kube.Modified, "n2", 120, node("True", "unschedulable: true"))
	f.Event(nodes, kube.Modified, "n2", 123, node("True", ""))
	f.Event(nodes, kube.Modified, "n1", 125, node("Unknown", ""))
	f.Event(nodes, kube.Modified, "n1", 126, node("True", ""))
	f.Event(nodes, kube.Modified, "n1", 127, node("Unknown", "")) // which leave room for the others
	f.Event(nodes, kube.Modified, "n1", 128, node("True", ""))
	config := f.Stream(kube.Resource{Version: "v1", Name: "configmaps"}, 128, 0, pasttest.Thing(t, "default/settings", 90, `{kind: ConfigMap, apiVersion: v1, data: {a: "1"}}`))
	f.Events(config, 129) // a late change
	if err := config.AppendLate([]history.Event{{Type: kube.Modified, Object: pasttest.Thing(t, "default/settings", 131, `{kind: ConfigMap, apiVersion: v1, data: {a: "2"}}`)}}, 131, f.At(29), f.At(45)); err != nil {
		t.Fatal(err)
	}
	pods := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/web-1-b", 90, pod("n2", "phase: Running")))
	f.Event(pods, kube.Deleted, "default/web-1-b", 122, pod("n2", "phase: Running"))
	f.Event(pods, kube.Added, "default/web-1-a", 124, pod("n1", "phase: Running"))
	f.Event(pods, kube.Modified, "default/web-1-a", 130, pod("n1", `phase: Running, containerStatuses: [{name: main, state: {terminated: {exitCode: 1, finishedAt: "`+stamp(30)+`"}}}]`))
	f.Event(pods, kube.Added, "default/other", 131, `{kind: Pod, apiVersion: v1, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, lastTransitionTime: "`+stamp(31)+`"}]}}`)

	got := map[string][]string{}
	found := f.findings("?at=" + f.when(50))
	if !slices.Contains(found.NotRecorded, "secrets") || slices.Contains(found.NotRecorded, "configmaps") {
		t.Errorf("not recorded: %q", found.NotRecorded)
	}
	for _, item := range found.Items {
		for _, c := range item.Before {
			if !c.NotBefore.IsZero() {
				c.Summary = append(c.Summary, fmt.Sprint("not before ", c.NotBefore.Sub(f.At(0))))
			}
			got[item.Rule] = append(got[item.Rule], fmt.Sprintf("%v %s: %s", c.Time.Sub(f.At(0)), c.Name, strings.Join(c.Summary, "; ")))
		}
		for _, span := range item.Unobserved {
			got[item.Rule] = append(got[item.Rule], fmt.Sprintf("not observed %v %v", span.From.Sub(f.At(0)), span.To.Sub(f.At(0))))
		}
	}
	want := map[string][]string{
		"crash":       {"45s settings: key a changed; not before 29s", "28s n1: Ready unknown → Ready", "27s n1: Ready → Ready unknown", "23s n2: uncordoned", "20s n2: cordoned", "not observed 3s 10s"},
		"unscheduled": {"31s other: created", "15s n3: cordoned", "3s n3: created", "not observed 3s 10s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBeforeItself: the last change of the subject itself is among the changes before, however many
// are later; and that the quota was raised, or deleted, which a message names, though it was later.
func TestBeforeItself(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	web := func(image string) string {
		return `{kind: Deployment, apiVersion: apps/v1, spec: {replicas: 2, template: {spec: {containers: [{name: main, image: "` + image + `"}]}}}}`
	}
	deployments := f.Stream(pasttest.Deployments, 100, 0, pasttest.Thing(t, "default/web", 90, web("web:1")))
	f.Event(deployments, kube.Modified, "default/web", 110, web("web:2"))
	f.Event(deployments, kube.Added, "default/other", 112, `{kind: Deployment, apiVersion: apps/v1}`)
	f.Event(deployments, kube.Added, "default/another", 113, `{kind: Deployment, apiVersion: apps/v1}`)
	sets := f.Stream(kube.Resource{Group: "apps", Version: "v1", Name: "replicasets"}, 100, 0)
	f.Event(sets, kube.Added, "default/web-a", 120, `{kind: ReplicaSet, apiVersion: apps/v1, metadata: {ownerReferences: [{kind: Deployment, name: web, controller: true}]}, spec: {replicas: 2},
		status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "pods x is forbidden: exceeded quota: podq, requested: pods=1", lastTransitionTime: "`+f.At(20).UTC().Format(time.RFC3339)+`"}]}}`)
	f.Events(sets, 150)
	f.Events(deployments, 150)
	quotas := f.Stream(kube.Resource{Version: "v1", Name: "resourcequotas"}, 100, 0)
	f.Event(quotas, kube.Added, "default/podq", 115, `{kind: ResourceQuota, apiVersion: v1}`)
	f.Event(quotas, kube.Modified, "default/podq", 130, `{kind: ResourceQuota, apiVersion: v1, spec: {hard: {pods: 9}}}`)
	f.Event(quotas, kube.Modified, "default/podq", 135, `{kind: ResourceQuota, apiVersion: v1, spec: {hard: {pods: 9}}, status: {used: {pods: 1}}}`)
	f.Event(quotas, kube.Deleted, "default/podq", 140, `{kind: ResourceQuota, apiVersion: v1}`)
	f.Events(quotas, 150)
	var got []string
	for _, item := range f.findings("?at=" + f.when(50)).Items {
		for _, c := range item.Before {
			got = append(got, fmt.Sprintf("%v %s: %s", c.Time.Sub(f.At(0)), c.Name, strings.Join(c.Summary, "; ")))
		}
	}
	want := []string{"40s podq: deleted", "30s podq: hard.pods none → 9", "15s podq: created", "13s another: created", "10s web: image web:1 → 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBeforeOnNode: what became of the Node on which the Pods are is among the changes before,
// however much became later of others that Pods have left, and nothing of those that they left long
// before.
func TestBeforeOnNode(t *testing.T) {
	f := newFixtureAt(t, fakeapi.New(fakeapi.Options{Allow: allow}))
	ready := func(status string) string {
		return "{kind: Node, apiVersion: v1, status: {conditions: [{type: Ready, status: '" + status + "'}]}}"
	}
	pod := func(node, status string) string {
		return "{kind: Pod, apiVersion: v1, metadata: {ownerReferences: [{kind: ReplicaSet, name: web-1, uid: r, controller: true}]}, spec: {nodeName: " + node + ", volumes: [{name: c, configMap: {name: settings}}]}, status: {" + status + "}}"
	}
	running := "phase: Running"
	var all []*scan.Object
	for i, name := range []kube.Key{"n1", "n2", "n3"} {
		all = append(all, pasttest.Thing(t, name, 80+uint64(i), ready("True")))
	}
	nodes := f.Stream(pasttest.Nodes, 100, 0, all...)
	pods := f.Stream(pasttest.Pods, 100, 0, pasttest.Thing(t, "default/a", 90, pod("n1", running)), pasttest.Thing(t, "default/b", 91, pod("n2", running)), pasttest.Thing(t, "default/c", 92, pod("n3", running)))
	config := f.Stream(kube.Resource{Version: "v1", Name: "configmaps"}, 100, 0, pasttest.Thing(t, "default/settings", 90, "{kind: ConfigMap, apiVersion: v1}"))
	f.Event(nodes, kube.Modified, "n1", 200, ready("Unknown"))
	for i := range uint64(4) {
		f.Event(config, kube.Modified, "default/settings", 210+i, fmt.Sprintf("{kind: ConfigMap, apiVersion: v1, data: {a: '%d'}}", i))
	}
	f.Event(pods, kube.Deleted, "default/c", 220, pod("n3", running))
	f.Event(nodes, kube.Modified, "n2", 300, ready("Unknown"))
	f.Event(nodes, kube.Modified, "n2", 301, ready("True"))
	f.Event(nodes, kube.Modified, "n3", 302, ready("Unknown"))
	f.Event(nodes, kube.Modified, "n3", 303, ready("True"))
	f.Event(pods, kube.Deleted, "default/b", 590, pod("n2", running))
	f.Event(pods, kube.Modified, "default/a", 600, pod("n1", "phase: Running, containerStatuses: [{name: main, state: {terminated: {exitCode: 1}}}]"))
	var got []string
	for _, item := range f.findings("").Items {
		for _, c := range item.Before {
			if item.Rule == "crash" {
				got = append(got, fmt.Sprintf("%v %s", c.Time.Sub(f.At(0)), c.Name))
			}
		}
	}
	if want := []string{"3m21s n2", "1m53s settings", "1m52s settings", "1m51s settings", "1m40s n1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
