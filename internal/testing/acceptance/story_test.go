// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"regexp"
	"strings"
	"testing"
)

// TestStory: while a rollout fails, the first line of the story says what fails, and why; after
// the rollback, also what ended it. The ConfigMap that its Pods use was changed before.
func TestStory(t *testing.T) {
	inStage(t, quiet)
	ns := namespace(t)
	recording, err := cluster.Gateway("--data-dir", t.TempDir(), "--record", "core,configmaps")
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Terminate()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("the story is\n%s", last)
		}
	}()
	first := func() string {
		out, code := watchkeeper(t, recording.URL, "story", "deployment/web", "-n", ns)
		last = out
		line, _, _ := strings.Cut(out, "\n")
		if code != 0 {
			return out
		}
		return line
	}
	kubectl(t, "-n", ns, "create", "configmap", "settings", "--from-literal=url=a-value")
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=nginx:1.25", "--replicas=2")
	kubectl(t, "-n", ns, "set", "env", "deployment/web", "--from=configmap/settings")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web")
	recordedOf(t, recording, ns, "deployments.v1.apps", "/apis/apps/v1")
	kubectl(t, "-n", ns, "patch", "configmap", "settings", "-p", `{"data":{"url":"another-value"}}`)
	kubectl(t, "-n", ns, "patch", "deployment", "web", "-p", `{"spec":{"template":{"metadata":{"labels":{"localcluster.watchkeeper.dev/crash":"true"}},"spec":{"containers":[{"name":"nginx","image":"nginx:1.27"}]}}}}`)
	fails := regexp.MustCompile(`^since .* after ConfigMap settings, which the failed Pods use, was changed \(key url changed, by kubectl-patch\): rollout of web from 1\.25 to 1\.27 \(revision \d, by kubectl-patch\)( failed|, complete after [^,]*, then failed [^:]*): [12] Pods? CrashLoopBackOff \(exit 1: .*still so at the end of the story, with \d of 2 ready`)
	eventually(t, "a story of the failed rollout", func() bool { return fails.MatchString(first()) })
	kubectl(t, "-n", ns, "rollout", "undo", "deployment/web")
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web")
	ended := regexp.MustCompile(`^\d.*–.* rollout of web from 1\.25 to 1\.27 \(revision \d, by kubectl-patch\)( failed|, complete after [^,]*, then failed [^:]*): [12] Pods? CrashLoopBackOff \(exit 1: .*\).*; rolled back to 1\.25 by kubectl`)
	eventually(t, "a story of the rollback", func() bool { return ended.MatchString(first()) })
	for _, form := range []string{"text", "json", "markdown"} {
		out, code := watchkeeper(t, recording.URL, "story", "deploy", "web", "-n", ns, "-v", "-o", form)
		if code != 0 || !strings.Contains(out, "kubectl-patch") || !strings.Contains(out, "key url changed") || strings.Contains(out, "another-value") {
			t.Errorf("%s: %d %s", form, code, out)
		}
	}
	out, code := watchkeeper(t, recording.URL, "story", "configmap/settings", "-n", ns)
	if code != 0 || !strings.Contains(out, "key url changed by kubectl-patch") {
		t.Errorf("%d %s", code, out)
	}
}
