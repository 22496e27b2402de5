// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestPastReviews: a client that asks what it may do in the past learns that it may read
// what it may read now, and write nothing.
func TestPastReviews(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	g := recordingGateway(t)
	past := pastKubectl(t, g, "1m")
	for _, test := range []struct {
		args string
		want string
		yes  bool
	}{
		{"auth can-i list pods", "yes", true},
		{"auth can-i watch deployments.apps -A", "yes", true},
		{"auth can-i get pods --subresource=log", "yes", true},
		{"auth can-i get /version", "yes", true},
		{"auth can-i delete pods", "no - the past is read-only", false},
		{"auth can-i create deployments.apps -n " + ns, "no - the past is read-only", false},
		{"auth can-i * *", "no - the past is read-only", false},
		{"auth can-i create pods --subresource=exec", "no - the past is read-only", false},
		{"auth can-i get pods --subresource=exec", "no - the past is read-only", false},
		{"auth can-i post /version", "no - the past is read-only", false},
	} {
		if out, ok := run(t, past, strings.Fields(test.args)...); ok != test.yes || !strings.Contains(out, test.want) {
			t.Errorf("kubectl %s: %s", test.args, out)
		}
	}
	out, ok := run(t, past, "auth", "can-i", "--list", "-n", ns)
	if !ok || !strings.Contains(out, "[get list watch]") || strings.Contains(out, "create") || strings.Contains(out, "[*]\n") {
		t.Errorf("kubectl auth can-i --list: %s", out)
	}
	// Without credentials of its own a client is the gateway, which has the same as kubectl.
	if out, ok := run(t, past, "auth", "whoami"); !ok || out != kubectl(t, "auth", "whoami") {
		t.Errorf("kubectl auth whoami: %s", out)
	}
	t.Run("typed client", func(t *testing.T) { typedReviews(t, g, ns) })
}

// typedReviews sends what k9s sends before and while it shows Pods, as a user with few
// rights: the version, reviews of what it may do, and lists.
func typedReviews(t *testing.T, g *clustertest.Gateway, ns string) {
	const user = "viewer"
	account, err := api.CoreV1().ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: ns}}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "watch", "delete"}, APIGroups: []string{""}, Resources: []string{"pods"}},
		{Verbs: []string{"update"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
	}}
	if _, err := api.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: user}}
	if _, err := api.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := api.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "-n", ns, "run", "solo", "--image=nginx")
	observed(t, g, ns)
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		client := func(server string) kubernetes.Interface {
			c, err := kubernetes.NewForConfig(&rest.Config{Host: server, BearerToken: token.Status.Token, ContentConfig: rest.ContentConfig{ContentType: contentType}})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		past := client(g.URL + "/at/now")
		if v, err := past.Discovery().ServerVersion(); err != nil || v.Major != "1" {
			t.Errorf("version: %v, %v", v, err)
		}
		may := func(a authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
			got, err := past.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}, metav1.CreateOptions{})
			if err != nil {
				return authorizationv1.SubjectAccessReviewStatus{}, err
			}
			if got.Spec.ResourceAttributes.Verb != a.Verb || got.Spec.ResourceAttributes.Resource != a.Resource {
				t.Errorf("asked about %+v, answered about %+v", a, got.Spec)
			}
			return got.Status, nil
		}
		eventually(t, "the right to list Pods", func() bool { // the API server's own caches lag
			s, err := may(authorizationv1.ResourceAttributes{Namespace: ns, Verb: "list", Resource: "pods"})
			if err != nil {
				t.Fatal(contentType, err)
			}
			return s.Allowed
		})
		for verb, want := range map[string]bool{"get": true, "list": true, "watch": true, "delete": false, "create": false, "patch": false, "update": false} {
			got, err := may(authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: "pods"})
			if err != nil || got.Allowed != want || !want && (!got.Denied || got.Reason != "the past is read-only") {
				t.Errorf("%s in %s: %+v, %v", verb, contentType, got, err)
			}
		}
		// What the API server denies is denied in its words.
		if got, err := may(authorizationv1.ResourceAttributes{Namespace: "default", Verb: "list", Resource: "pods"}); err != nil || got.Allowed || strings.Contains(got.Reason, "past") {
			t.Errorf("another namespace in %s: %+v, %v", contentType, got, err)
		}
		rules, err := past.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(contentType, err)
		}
		pods := false
		for _, rule := range rules.Status.ResourceRules {
			if !onlyReads(rule.Verbs) || slices.Contains(rule.Resources, "configmaps") {
				t.Errorf("%s: rule %+v", contentType, rule)
			}
			pods = pods || slices.Equal(rule.Resources, []string{"pods"}) && len(rule.Verbs) == 3
		}
		for _, rule := range rules.Status.NonResourceRules {
			if !onlyReads(rule.Verbs) {
				t.Errorf("%s: rule %+v", contentType, rule)
			}
		}
		if !pods || len(rules.Status.NonResourceRules) == 0 {
			t.Errorf("%s: %+v", contentType, rules.Status)
		}
		self, err := past.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || self.Status.UserInfo.Username != "system:serviceaccount:"+ns+":default" {
			t.Errorf("%s: %+v, %v", contentType, self, err)
		}
		list, err := past.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("%s: %+v, %v", contentType, list, err)
		}
		if err := past.CoreV1().Pods(ns).Delete(t.Context(), "solo", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "the past can only be read") {
			t.Errorf("%s: %v", contentType, err)
		}
		// In the present, the user may delete Pods.
		now, err := client(g.URL).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "delete", Resource: "pods"}}}, metav1.CreateOptions{})
		if err != nil || !now.Status.Allowed {
			t.Errorf("%s: %+v, %v", contentType, now, err)
		}
	}
}

// onlyReads reports whether the verbs of a rule are reads.
func onlyReads(verbs []string) bool {
	return !slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) })
}
