// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"strings"
	"testing"
)

// TestSharedCommands: the commands read a gateway in shared mode with a user's token.
func TestSharedCommands(t *testing.T) {
	inStage(t, quiet)
	shared := startShared(t, "--data-dir", t.TempDir())
	token, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The history tells of a creation only if the record began before it.
	eventually(t, "a record of Deployments", func() bool {
		head, _ := gauge(t, shared.Gateway, `watchkeeper_history_head_rv{resource="deployments.v1.apps"}`)
		return head > 0
	})
	ns := namespace(t)
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=registry.example/web:1.0")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=150s")
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
