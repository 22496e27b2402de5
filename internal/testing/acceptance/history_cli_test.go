// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// watchkeeper runs the real command against a gateway; it returns what it printed
// and the exit code.
func watchkeeper(t *testing.T, server string, args ...string) (string, int) {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "watchkeeper"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "WATCHKEEPER_SERVER="+server, "KUBECONFIG="+os.DevNull, "PATH="+pathWithKubectl(t))
	out, err := cmd.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return string(out), failed.ExitCode()
	}
	if err != nil {
		t.Fatalf("watchkeeper %v: %v: %s", args, err, out)
	}
	return string(out), 0
}

// pathWithKubectl returns a PATH with a kubectl: localcluster's, if the machine
// has none.
func pathWithKubectl(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PATH")
	if _, err := exec.LookPath("kubectl"); err == nil {
		return path
	}
	bin := t.TempDir()
	script := "#!/bin/sh\nexec " + strings.Join(cluster.Kubectl(t.Context()).Args, " ") + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin + string(os.PathListSeparator) + path
}

// TestHistoryCommands changes a Deployment in typical ways and checks the output
// of the history commands against a recording gateway.
func TestHistoryCommands(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	recording, err := cluster.Gateway("--data-dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Terminate()
	server := recording.URL
	// diff needs the start of the history of every resource.
	eventually(t, "a history of all that is recorded", func() bool {
		var h struct {
			Resources []struct {
				Epochs []struct {
					Span struct{ From struct{ Time time.Time } }
				}
			}
		}
		_, body := get(t, http.DefaultClient, server+"/watchkeeper/v1/history")
		if json.Unmarshal([]byte(body), &h) != nil {
			return false
		}
		begun := 0
		for _, r := range h.Resources {
			if len(r.Epochs) > 0 && !r.Epochs[0].Span.From.Time.IsZero() {
				begun++
			}
		}
		return begun >= 13 && begun == len(h.Resources) // the kinds of --record core
	})
	start := time.Now().UTC().Format(time.RFC3339Nano)
	recorded := func() {
		t.Helper()
		recordedOf(t, recording, ns, "deployments.v1.apps", "/apis/apps/v1")
		recordedOf(t, recording, ns, "pods.v1", "/api/v1")
	}

	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=nginx:1.25", "--replicas=1")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web")
	recorded()
	created := time.Now().UTC().Format(time.RFC3339Nano)
	kubectl(t, "-n", ns, "scale", "deployment/web", "--replicas=3")
	kubectl(t, "-n", ns, "set", "image", "deployment/web", "nginx=nginx:1.27")
	kubectl(t, "-n", ns, "label", "deployment/web", "team=a")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web")
	recorded()

	out, code := watchkeeper(t, server, "history", "deploy/web", "-n", ns)
	at := -1
	for _, want := range []string{
		`label team=a added  by kubectl-label`, `image nginx:1\.25 → 1\.27  by kubectl-set`, `replicas 1 → 3  by kubectl`,
		`\d +created  by kubectl-create`,
	} {
		found := regexp.MustCompile(want).FindStringIndex(out)
		if found == nil || found[0] < at {
			t.Fatalf("%q is not in order in\n%s", want, out)
		}
		at = found[0]
	}
	if code != 0 || strings.Contains(out, "\x1b") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code = watchkeeper(t, server, "history", "deployment.apps", "web", "-n", ns, "-p", "--until", created); code != 0 || !strings.Contains(out, "+    image: nginx:1.25\n") && !strings.Contains(out, "- image: nginx:1.25\n") {
		t.Errorf("exit code %d: %s", code, out)
	}

	out, code = watchkeeper(t, server, "diff", "deploy", "-n", ns, "--from", created)
	if code != 1 || !regexp.MustCompile(`(?m)^~ deployments\.apps `+ns+`/web  .*label team=a added`).MatchString(out) || !strings.Contains(out, "replicas 1 → 3") || !strings.Contains(out, "image nginx:1.25 → 1.27") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code = watchkeeper(t, server, "diff", "-n", ns, "--from", start, "--to", created); code != 1 || !strings.Contains(out, "+ deployments.apps "+ns+"/web  created") || !strings.Contains(out, "+ pods "+ns+"/web-") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code = watchkeeper(t, server, "diff", "namespace/"+ns, "--from", start); code != 0 || !strings.HasPrefix(out, "no differences of namespaces "+ns+" between ") {
		t.Errorf("exit code %d: %s", code, out)
	}

	if out, code = watchkeeper(t, server, "at", created, "--", "-n", ns, "get", "deploy,pods", "-o", "name"); code != 0 || strings.Count(out, "pod/web-") != 1 || !strings.Contains(out, "deployment.apps/web\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code = watchkeeper(t, server, "at", created, "--", "-n", ns, "get", "deploy", "web", "-o", "jsonpath={.spec.replicas}"); code != 0 || out != "1" {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code = watchkeeper(t, server, "at", created, "--", "-n", ns, "delete", "deploy", "web"); code == 0 {
		t.Errorf("the past was changed: %s", out)
	}
	if out, code = watchkeeper(t, server, "at", "9d", "--", "get", "pods"); code != 1 || !strings.Contains(out, "before the recorded history") {
		t.Errorf("exit code %d: %s", code, out)
	}

	// The API returns the same.
	_, body := get(t, http.DefaultClient, server+"/watchkeeper/v1/history/changes?from="+start+"&resource=deployments.apps&namespace="+ns+"&limit=1000")
	if !strings.Contains(body, `"image nginx:1.25 → 1.27"`) || !strings.Contains(body, `{"value":"nginx:1.27","op":"replace","path":"/spec/template/spec/containers/0/image"}`) {
		t.Errorf("%s", body)
	}
	var counts struct {
		Resources []struct{ Added, Modified []int }
	}
	_, body = get(t, http.DefaultClient, server+"/watchkeeper/v1/history/counts?bin=1m&resource=deployments.apps&from="+start)
	if err := json.Unmarshal([]byte(body), &counts); err != nil || len(counts.Resources) != 1 {
		t.Fatalf("%v: %s", err, body)
	}
	if c := counts.Resources[0]; total(c.Added) < 1 || total(c.Modified) < 4 {
		t.Errorf("%s", body)
	}
}

func total(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
