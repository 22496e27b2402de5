// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestReadOnly: kubectl reads through a gateway with --read-only, changes nothing, and says
// why.
func TestReadOnly(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	g := recordingGateway(t, "--read-only", "--disable-filter")
	kubectl(t, "-n", ns, "run", "solo", "--image=nginx", "--labels=app=solo")
	kubectl(t, "-n", ns, "create", "configmap", "first", "--from-literal=a=1")
	kubectl(t, "-n", ns, "wait", "--for=condition=Ready", "pod/solo", "--timeout=150s")
	observed(t, g, ns)
	dir := t.TempDir()
	manifest := filepath.Join(dir, "cm.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\ndata: {a: \"2\"}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	editor := filepath.Join(dir, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/a: \"1\"/a: \"2\"/' \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := append([]string{"env", "KUBE_EDITOR=" + editor, "TMPDIR=" + dir}, cluster.Kubectl(t.Context()).Args...)
	command = append(command, "-s", g.URL, "-n", ns)
	before := kubectl(t, "-n", ns, "get", "configmaps,pods,services", "-o", "name") + kubectl(t, "-n", ns, "get", "configmap", "first", "-o", "yaml")
	for args, want := range map[string]string{
		"get pods":                                 "solo",
		"get configmap first -o yaml":              `a: "1"`,
		"get pods -w --request-timeout=8s -o name": "pod/solo",
		"describe pod solo":                        "Ready",
		"api-resources":                            "deployments",
		"explain pods.spec":                        "containers",
		"version":                                  "Server Version",
		"auth can-i list pods":                     "yes",
		"auth can-i --list":                        "[get list watch]",
		"auth whoami":                              "Username",
		"get pods --server " + g.URL + "/at/now":   "solo",
		"wait --for=condition=Ready pod/solo":      "condition met",
	} {
		out, ok := run(t, command, strings.Fields(args)...)
		if !ok || !strings.Contains(out, want) {
			t.Errorf("kubectl %s: %s", args, out)
		}
	}
	if out, ok := run(t, command, "logs", "solo", "--tail=1"); !ok || strings.TrimSpace(out) == "" {
		t.Errorf("kubectl logs: %s", out)
	}
	for path, want := range map[string]string{
		"/watchkeeper/v1/history/changes?from=5m&resource=configmaps&namespace=" + ns:                                `"name":"first"`,
		"/watchkeeper/v1/multiwatch?watch=/api/v1/namespaces/" + ns + "/configmaps%3Fwatch%3D1%26timeoutSeconds%3D1": `"name":"first"`,
		"/ui/": "<html",
	} {
		if code, body := get(t, http.DefaultClient, g.URL+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.300s", path, code, body)
		}
	}
	for _, args := range []string{
		"delete configmap first", "delete configmaps --all", "delete namespace " + ns,
		"apply -f " + manifest, "apply --server-side -f " + manifest, "create -f " + manifest, "replace -f " + manifest,
		"create configmap third", "run other --image=nginx", "expose pod solo --port=80",
		"label pod solo a=b", "annotate configmap first a=b", "patch configmap first -p {\"data\":{\"a\":\"2\"}}",
		"diff -f " + manifest, // asks for a dry run
		"edit configmap first", "create token default", "taint nodes node-0 a=b:NoSchedule",
		"exec solo -- true", "attach solo", "cp " + manifest + " solo:/tmp/x", "port-forward solo :80",
		"get --raw /api/v1/namespaces/" + ns + "/pods/solo/proxy/", "get --raw /api/v1/nodes/node-0/proxy/pods",
		"delete --raw /api/v1/namespaces/" + ns + "/configmaps/first",
	} {
		out, ok := run(t, command, strings.Fields(args)...)
		t.Logf("kubectl %s: %s", args, out)
		if ok || !strings.Contains(out, "the gateway is read-only (--read-only): ") || !strings.Contains(out, " is refused") {
			t.Errorf("kubectl %s: %s", args, out)
		}
	}
	for _, verb := range []string{"delete", "create", "patch", "*"} {
		if out, ok := run(t, command, "auth", "can-i", verb, "pods"); ok || !strings.Contains(out, "no - the gateway is read-only") {
			t.Errorf("kubectl auth can-i %s pods: %s", verb, out)
		}
	}
	if after := kubectl(t, "-n", ns, "get", "configmaps,pods,services", "-o", "name") + kubectl(t, "-n", ns, "get", "configmap", "first", "-o", "yaml"); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}
