// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package selfreview

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestOf: only a POST of the exact path is a review.
func TestOf(t *testing.T) {
	for _, test := range []struct {
		method, path string
		want         Kind
	}{
		{"POST", accessPath, Access},
		{"POST", accessPath + "?fieldManager=kubectl", Access},
		{"POST", rulesPath, Rules},
		{"POST", userPath, User},
		{"POST", "/apis/authentication.k8s.io/v1beta1/selfsubjectreviews", User},
		{"POST", "/apis/authentication.k8s.io/v1alpha1/selfsubjectreviews", User},
		{"GET", accessPath, None},
		{"post", accessPath, None},
		{"PUT", accessPath, None},
		{"POST", accessPath + "/", None},
		{"POST", accessPath + "/x", None},
		{"POST", "/" + accessPath, None},
		{"POST", "/x/.." + accessPath, None},
		{"POST", "/apis/authorization.k8s.io/v1%2fselfsubjectaccessreviews", None},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreview%73", None},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", None},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews", None},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", None},
		{"POST", "/at/10m" + accessPath, None}, // the caller removes the moment
	} {
		if got := Of(httptest.NewRequest(test.method, "http://localhost"+test.path, http.NoBody)); got != test.want {
			t.Errorf("%s %s: %d, want %d", test.method, test.path, got, test.want)
		}
	}
	r := httptest.NewRequest("POST", accessPath, http.NoBody)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "SPDY/3.1")
	if got := Of(r); got != None {
		t.Errorf("an upgrade: %d", got)
	}
}

func TestIsWrite(t *testing.T) {
	on := func(verb, resource, subresource string) authorizationv1.SelfSubjectAccessReviewSpec {
		return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource, Subresource: subresource}}
	}
	url := func(verb string) authorizationv1.SelfSubjectAccessReviewSpec {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: "/healthz"}}
	}
	both := url("get")
	both.ResourceAttributes = on("get", "pods", "").ResourceAttributes
	for _, test := range []struct {
		spec      authorizationv1.SelfSubjectAccessReviewSpec
		write, ok bool
	}{
		{on("get", "pods", ""), false, true},
		{on("list", "*", ""), false, true},
		{on("watch", "pods", ""), false, true},
		{on("get", "pods", "log"), false, true},
		{on("get", "deployments", "scale"), false, true},
		{on("create", "pods", ""), true, true},
		{on("update", "pods", ""), true, true},
		{on("patch", "pods", ""), true, true},
		{on("delete", "pods", ""), true, true},
		{on("deletecollection", "pods", ""), true, true},
		{on("impersonate", "users", ""), true, true},
		{on("*", "pods", ""), true, true},
		{on("", "pods", ""), true, true},
		{on("GET", "pods", ""), true, true},
		{on("get ", "pods", ""), true, true},
		{on("get", "pods", "exec"), true, true},
		{on("get", "pods", "attach"), true, true},
		{on("get", "pods", "portforward"), true, true},
		{on("get", "services", "proxy"), true, true},
		{on("get", "pods/exec", ""), true, true},
		{url("get"), false, true},
		{url("post"), true, true},
		{url("*"), true, true},
		{url("list"), true, true},
		{both, false, false},
		{authorizationv1.SelfSubjectAccessReviewSpec{}, false, false},
	} {
		if write, ok := isWrite(&test.spec); write != test.write || ok != test.ok {
			t.Errorf("%+v: %v, %v", test.spec, write, ok)
		}
	}
}

func TestReduce(t *testing.T) {
	s := authorizationv1.SubjectRulesReviewStatus{
		Incomplete: true, EvaluationError: "webhook",
		ResourceRules: []authorizationv1.ResourceRule{
			{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectaccessreviews"}},
			{Verbs: []string{"delete", "watch", "get"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/exec", "pods/log"}, ResourceNames: []string{"a"}},
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"services/proxy", "*/portforward"}},
			{},
		},
		NonResourceRules: []authorizationv1.NonResourceRule{
			{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
			{Verbs: []string{"get", "post"}, NonResourceURLs: []string{"/healthz"}},
			{Verbs: []string{"put"}, NonResourceURLs: []string{"/x"}},
		},
	}
	reduce(&s)
	want := authorizationv1.SubjectRulesReviewStatus{
		Incomplete: true, EvaluationError: "webhook",
		ResourceRules: []authorizationv1.ResourceRule{
			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			{Verbs: []string{"get", "watch"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}, ResourceNames: []string{"a"}},
		},
		NonResourceRules: []authorizationv1.NonResourceRule{
			{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}},
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}},
		},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	// The API server sends no null.
	empty := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{{Verbs: []string{"create"}, Resources: []string{"pods"}}}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	if reduce(&empty); empty.ResourceRules == nil || len(empty.ResourceRules) > 0 || empty.NonResourceRules == nil {
		t.Errorf("%#v", empty)
	}
}
