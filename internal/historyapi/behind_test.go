// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/past/pasttest"
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
	own := []string{"Deployment/grown", "Deployment/web", "Event about Deployment/web", "Event about Pod/web-1", "Pod/web-1"}
	all := slices.Sorted(slices.Values(append(slices.Clone(own), "Deployment/search", "Pod/search-a-1", "ReplicaSet/search-a")))
	if got := subjects(decoded[api.Story](t, f.story(storyOfWeb+"?since=2h"))); !slices.Equal(got, all) {
		t.Errorf("%q, want %q", got, all)
	}
	s := decoded[api.Story](t, f.story(storyOfWeb+"?since=2h", "Authorization", "Bearer somebody"))
	if got := subjects(s); !slices.Equal(got, own) || !slices.Equal(s.Denied, []string{"pods of other namespaces"}) {
		t.Errorf("of a caller of one namespace: %q, want %q; denied: %q", got, own, s.Denied)
	}
}
