// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// recordedWeb starts a gateway in shared mode, and in a namespace the Deployment web, whose
// creation is in the history.
func recordedWeb(t *testing.T) (shared *clustertest.SharedGateway, ns string) {
	t.Helper()
	shared = startShared(t, "--data-dir", t.TempDir())
	// The history tells of a creation only if the record began before it.
	eventually(t, "a record of Deployments", func() bool {
		head, _ := gauge(t, shared.Gateway, `watchkeeper_history_head_rv{resource="deployments.v1.apps"}`)
		return head > 0
	})
	ns = namespace(t)
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=registry.example/web:1.0")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=150s")
	return shared, ns
}

// TestSharedCommands: the commands read a gateway in shared mode with a user's token.
func TestSharedCommands(t *testing.T) {
	inStage(t, quiet)
	shared, ns := recordedWeb(t)
	token, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := getFiles(t, "https://127.0.0.1:1") // of a context without credentials
	command := func(line string, args ...string) string {
		return outcomeOf(t, dir, cluster.Program(), append(append(strings.Fields(line), "-n", ns, "--server", shared.URL, "--certificate-authority", shared.CA), args...))
	}
	want := outcomeOf(t, dir, cluster.Kubectl(t.Context()).Args[0], []string{"kubectl", "--kubeconfig", cluster.Kubeconfig(), "get", "deploy,pods", "-n", ns})
	if got := command("get deploy,pods", "--token", token); likened(got, ns) != likened(want, ns) {
		t.Errorf("get: %s\nwant %s", got, want)
	}
	for line, want := range map[string]string{
		"history deployment/web":         "created  by kubectl-create",
		"changes deployments":            "deployments.apps " + ns + "/web  created",
		"diff deployments":               "deployments.apps " + ns + "/web",
		"story deployment/web":           "Deployment " + ns + "/web, ",
		"get deploy/web -o name --at 0s": "deployment.apps/web",
	} {
		eventually(t, want, func() bool { return strings.Contains(command(line, "--token", token), want) })
		if strings.HasPrefix(line, "get ") { // kubectl asks for a user's name
			continue
		}
		if got := command(line); !strings.Contains(got, "Unauthorized: use --token") || !strings.Contains(got, "exit code") {
			t.Errorf("%s without a token: %s", line, got)
		}
	}
	at := outcomeOf(t, dir, cluster.Program(), []string{"at", "now", "-n", ns, "--server", shared.URL, "--certificate-authority", shared.CA, "--token", token, "--", "get", "deployments", "-o", "name"})
	if !strings.Contains(at, "deployment.apps/web") && !strings.Contains(at, "kubectl is not in PATH") {
		t.Error(at)
	}
	if strings.Contains(shared.Log(), token) {
		t.Error("the log has the token")
	}
}

// withoutGateway are the commands that ask no gateway.
var withoutGateway = []string{"completion", "help", "open", "serve", "version"}

// TestCommandsOfTeam: all commands work for somebody who may do everything in one namespace.
// For somebody who may only get one object there, they work as far as they are about it; the
// others say what is missing.
func TestCommandsOfTeam(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	shared, ns := recordedWeb(t)
	kubectl(t, "-n", ns, "set", "image", "deployment/web", "web=registry.example/web:2.0")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=150s")

	dir := getFiles(t, "https://127.0.0.1:1") // of a context without credentials
	outcome := func(token, line string) string {
		before, after, _ := strings.Cut(line, " --")
		args := append(strings.Fields(before), "-n", ns, "--server", shared.URL, "--certificate-authority", shared.CA, "--token", token)
		if after != "" {
			args = append(args, strings.Fields("--"+after)...)
		}
		return outcomeOf(t, dir, cluster.Program(), args)
	}
	member := account(t, ns, "member", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	holder := account(t, ns, "holder", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"web"}})

	const none = "you may list none of the recorded resources"
	tried := slices.Clone(withoutGateway)
	for _, test := range []struct{ line, member, holder string }{
		{"get deploy -o name", "deployment.apps/web", "cannot list"},
		{"get deploy/web -o name", "deployment.apps/web", "deployment.apps/web"},
		{"get deploy -o name --at 0s", "deployment.apps/web", "cannot list"},
		{"get deploy/web -o name --at 0s", "deployment.apps/web", "deployment.apps/web"},
		{"history deployment/web", "image", "image"},
		{"story deployment/web", "Deployment " + ns + "/web, ", "Deployment " + ns + "/web, "},
		{"diagnose", "fails", none},
		{"changes", "deployments.apps " + ns + "/web", none},
		{"changes deployments", "deployments.apps " + ns + "/web", "cannot list"},
		{"diff", "deployments.apps " + ns + "/web", none},
		{"diff deployments", "deployments.apps " + ns + "/web", "cannot list"},
		// An hour ago is before the record: when it begins, the index does not tell the holder.
		{"diff deployment/web", "deployments.apps " + ns + "/web", "before the recorded history"},
		{"at 0s -- get deployments -o name", "deployment.apps/web", "cannot list"},
		{"at 0s -- get deployment/web -o name", "deployment.apps/web", "deployment.apps/web"},
		{"record export -o " + filepath.Join(t.TempDir(), "a.wkr"), "namespace " + ns, none},
		{"sheet " + filepath.Join(t.TempDir(), "a.xlsx") + " deployments", "a.xlsx", "cannot list"},
	} {
		tried = append(tried, strings.Fields(test.line)[0])
		for _, user := range []struct{ name, token, want string }{{"member", member, test.member}, {"holder", holder, test.holder}} {
			got := outcome(user.token, test.line)
			if !strings.Contains(got, user.want) {
				t.Errorf("%s for the %s does not say %q: %s", test.line, user.name, user.want, got)
			}
			if strings.Contains(got, "watchkeeper: nothing is recorded") || strings.Contains(got, "cluster scope") {
				t.Errorf("%s for the %s: %s", test.line, user.name, got)
			}
		}
	}
	for name := range strings.Lines(outcomeOf(t, dir, cluster.Program(), []string{"__complete", ""})) {
		if name, _, ok := strings.Cut(name, "\t"); ok && regexp.MustCompile(`^[a-z]+$`).MatchString(name) && !slices.Contains(tried, name) {
			t.Errorf("the command %s was not tried", name)
		}
	}
}

// account makes a ServiceAccount with a Role in a namespace and the rights to the past, and
// returns its token.
func account(t *testing.T, ns, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}}
	rbac, past := api.RbacV1(), metav1.ObjectMeta{Name: ns + "-" + name}
	create := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create(api.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}))
	create(rbac.Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}))
	create(rbac.RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, metav1.CreateOptions{}))
	create(rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: past, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/at", "/watchkeeper/v1/history"}},
	}}, metav1.CreateOptions{}))
	create(rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: past, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: past.Name}}, metav1.CreateOptions{}))
	token, err := cluster.Token(t.Context(), ns, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
