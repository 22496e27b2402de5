// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// TestSharedAggregated: an aggregated API server shows ServiceAccounts their own notes only,
// although RBAC lets each of them list all. No read through the gateway shows others.
func TestSharedAggregated(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	server := fakeapi.New(fakeapi.Options{EagerBookmarks: true, Resources: []fakeapi.Resource{{Group: "notes.example.org", Version: "v1", Name: "notes", Kind: "Note"}}})
	server.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
		r.Header.Set("Accept", "application/json")
		if user := r.Header.Get("X-Remote-User"); strings.HasPrefix(user, "system:serviceaccount:aggregated:") {
			r.Query.Set("labelSelector", "owner="+user[strings.LastIndexByte(user, ':')+1:])
		}
		next(w)
	})
	for _, owner := range []string{"ann", "ben"} {
		server.Put("notes.notes.example.org", map[string]any{"metadata": map[string]any{"name": "of-" + owner, "uid": owner, "labels": map[string]string{"owner": owner}}})
	}
	t.Cleanup(func() {
		_ = cluster.Kubectl(context.Background(), "delete", "namespace/aggregated", "--ignore-not-found").Run()
	})
	register(t, "notes", server)
	kubectl(t, "wait", "apiservice/v1.notes.example.org", "--for=condition=Available", "--timeout=150s")

	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "aggregated"}}, metav1.CreateOptions{}))
	must(api.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "aggregated"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"notes.example.org"}, Resources: []string{"notes"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/at", "/watchkeeper/v1/history"}},
	}}, metav1.CreateOptions{}))
	must(api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "aggregated"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "aggregated"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:aggregated"}}}, metav1.CreateOptions{}))
	must(api.CoreV1().ServiceAccounts("aggregated").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "ann"}}, metav1.CreateOptions{}))
	token, err := cluster.Token(t.Context(), "aggregated", "ann", 0)
	if err != nil {
		t.Fatal(err)
	}
	g := startShared(t, "--data-dir", path.Join(t.TempDir(), "data"), "--record", "core,notes.notes.example.org")
	ann := newSharedUser(t, g, "ann", token)
	const base = "/apis/notes.example.org/v1/notes"
	for _, read := range []struct {
		path string
		own  bool // what the API server shows
	}{
		{base, true},
		{base + "?resourceVersion=0", true},
		{base + "?watch=1&resourceVersion=0&timeoutSeconds=1", true},
		{base + "/of-ann?resourceVersion=0", true},
		{base + "?fields=metadata.name&resourceVersion=0", false},
		{"/watchkeeper/v1/multiwatch?watch=" + url.QueryEscape(base+"?watch=1&resourceVersion=0&timeoutSeconds=1"), true},
		{"/at/0s" + base, false},
		{"/at/0s" + base + "?watch=1&timeoutSeconds=1", false},
		{"/watchkeeper/v1/history/changes?from=1h&objects=true", false},
	} {
		for range 3 { // the first may find that the gateway does not watch them yet
			got, err := ann.get(t.Context(), g.URL+read.path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got.body, "of-ben") || strings.Contains(got.body, "of-ann") != read.own {
				t.Errorf("%s: %d %s", read.path, got.code, got.body)
			}
		}
	}
}
