// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestDiagnose makes workloads fail, and compares what diagnose finds: a quota that allows too
// few Pods, and Pods for which there is no Node. Nothing is found before, and once it is
// repaired.
func TestDiagnose(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	recording, err := cluster.Gateway("--data-dir", t.TempDir(), "--record=core,resourcequotas")
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Terminate()
	diagnose := func(args ...string) (string, int) {
		return watchkeeper(t, recording.URL, append([]string{"diagnose", "-n", ns}, args...)...)
	}
	eventually(t, "nothing fails", func() bool {
		out, code := diagnose()
		return code == 0 && strings.Contains(out, "in namespace "+ns+": nothing fails of ")
	})

	kubectl(t, "-n", ns, "create", "quota", "compute", "--hard=pods=2")
	kubectl(t, "-n", ns, "run", "lonely", "--image=nginx:1.25", `--overrides={"spec":{"nodeSelector":{"no":"node"}}}`)
	kubectl(t, "-n", ns, "create", "deployment", "web", "--image=nginx:1.25", "--replicas=3")
	var out string
	want := regexp.MustCompile(`(?s)✗ Deployment ` + ns + `/web  Pods cannot be created: [01] of 3 exist\n    since [^\n]* for [^\n]*: web-[^\n]*\n    says: FailedCreate: pods "web-[^\n]* is forbidden: exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2\n` +
		`(    just before: [^\n]*\n)*    just before: [^\n]*  Deployment ` + ns + `/web  created  by kubectl-create\n` +
		`.*! Pod ` + ns + `/lonely  1 Pod Pending, not scheduled\n    since [^\n]*\n    says: Unschedulable: 0/`)
	eventually(t, "the findings", func() bool {
		var code int
		out, code = diagnose()
		return code == 4 && want.MatchString(out)
	})
	failing := time.Now().UTC().Format(time.RFC3339)

	kubectl(t, "-n", ns, "delete", "pod", "lonely")
	kubectl(t, "-n", ns, "patch", "quota", "compute", "--type=merge", `--patch={"spec":{"hard":{"pods":"9"}}}`)
	kubectl(t, "-n", ns, "scale", "deployment/web", "--replicas=2") // makes the controller try again
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web")
	eventually(t, "nothing fails any more", func() bool {
		_, code := diagnose()
		return code == 0
	})
	if again, code := diagnose("--at", failing); code != 4 || !want.MatchString(again) {
		t.Errorf("at the time of the failure: %d %s", code, again)
	}
	t.Logf("%s", out)
}
