// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"strings"
	"testing"
)

// available is the condition of a Deployment whose last rollout is complete.
const available = `, conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}]`

// TestNoRollout: Pods that are missing or fail are no rollout, whatever part of it a story has.
func TestNoRollout(t *testing.T) {
	short := strings.Replace(done(1, 2), "readyReplicas: 2, availableReplicas: 2", "readyReplicas: 1, availableReplicas: 1", 1) + available
	l := newLog(t, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", short), replicaSet("a", "r/web:1.0", "replicas: 2"), pod("web-a-1", "web-a", "", "", backOff))
	const crash = "Deployment web: 1 Pod CrashLoopBackOff (exit 1: no database)"
	l.want("Deployment/web", 40, "..0- failed: "+crash+"; still so at the end of the story, with 1 of 2 ready")
	l.put(50, pod("web-a-1", "web-a", "", "", running))
	l.put(51, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)+available))
	l.want("Deployment/web", 60, "..0-50 failed: "+crash+", recovered after at least 50s; 1 of 2 ready at its end, and 2 of 2 at the end of the story")

	// A quota that stops scaling is none, nor does it make the last rollout fail.
	l = newLog(t)
	l.put(1, deployment(1, 2, "r/web:1.0", "kubectl-create", "", ""))
	l.put(1.5, replicaSet("a", "r/web:1.0", "replicas: 2"))
	l.put(2, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)+available))
	l.put(30, deployment(2, 5, "r/web:1.0", "kubectl-scale", "1", done(1, 2)+available))
	l.put(31, replicaSet("a", "r/web:1.0", `conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "pods is forbidden: exceeded quota: q, used"}]`))
	want := []string{"30- info: Deployment web scaled 2 → 5 by kubectl-scale, 2 of 5 ready",
		"31- failed: Deployment web: Pods could not be created: exceeded quota: q, used; still so at the end of the story, with 2 of 5 ready"}
	l.want("Deployment/web", 60, append([]string{"1-2 info: Deployment web created with r/web:1.0 (revision 1, by kubectl-create), complete after 1s"}, want...)...)
	for _, created := range []int{1, 2} { // nor that of Pods that are not ready; and it is over when they are not wanted
		l = newLog(t)
		for i, condition := range []string{"", `{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "exceeded quota: q, used"}`, ""} {
			l.put(float64(1+30*i), deployment(i+1, 2+2*(i%2), "r/web:1.0", "m", "1", fmt.Sprintf("observedGeneration: %d, replicas: 2, updatedReplicas: %d", i+1, max(created, i))))
			l.put(float64(2+30*i), replicaSet("a", "r/web:1.0", "conditions: ["+condition+"]"))
		}
		if got := lines(l.tell("Deployment/web", 50)); created == 2 && !strings.Contains(got[0], ", in progress: ") {
			t.Errorf("%q", got)
		}
		if got := lines(l.tell("Deployment/web", 90)); !strings.HasSuffix(got[0], ", in progress: 2 of 2 Pods updated, 0 ready") || !strings.HasPrefix(got[2], "32-62 failed: Deployment web: Pods could not be created: exceeded quota: q, used; over after 30s") {
			t.Errorf("%q", got)
		}
	}
	l = newLog(t, deployment(2, 5, "r/web:1.0", "kubectl-scale", "1", done(1, 2)+available))
	l.initial(replicaSet("a", "r/web:1.0", `conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "pods is forbidden: exceeded quota: q, used"}]`))
	l.want("Deployment/web", 60, "..0- failed: Deployment web: Pods could not be created: exceeded quota: q, used; still so at the end of the story, with 2 of 5 ready")
}

// TestFailsLater: a Pod that crashes a minute after a rollout was complete does not make it a failed one.
func TestFailsLater(t *testing.T) {
	l := newLog(t, deployment(1, 1, "r/web:1.0", "kubectl-create", "1", done(1, 1)), replicaSet("a", "r/web:1.0", "replicas: 1"))
	l.put(10, deployment(2, 1, "r/web:1.1", "kubectl-set", "1", done(1, 1)))
	l.put(10.1, replicaSet("b", "r/web:1.1", ""))
	l.put(11, pod("web-b-1", "web-b", "", "", running))
	l.put(12, deployment(2, 1, "r/web:1.1", "kubectl-set", "2", done(2, 1)))
	l.put(72, pod("web-b-1", "web-b", "", "", backOff))
	l.want("Deployment/web", 100, "10-12 info: rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set), complete after 2s",
		"72- failed: 1m2s after Deployment web was changed (image r/web:1.0 → 1.1, by kubectl-set): Deployment web: 1 Pod CrashLoopBackOff (exit 1: no database), 1 restart; still so at the end of the story")
}

// TestRollback: only a template that it had is gone back to, as the ReplicaSets prove.
func TestRollback(t *testing.T) {
	for want, test := range map[string]struct{ a, b string }{
		"rollout of web from 1.1 again to 1.0": {"2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"},
		"rollout of web from 1.1 to 1.0":       {"2026-01-02T14:00:30Z", "2026-01-01T11:00:00Z"},
	} {
		created := func(text, at string) string {
			return strings.Replace(text, "metadata: {name", "metadata: {creationTimestamp: "+`"`+at+`", name`, 1)
		}
		l := newLog(t, deployment(1, 1, "r/web:1.1", "kubectl-create", "1", done(1, 1)+available), created(replicaSet("b", "r/web:1.1", ""), test.b))
		l.gap = at(10)
		l.put(70, created(replicaSet("a", "r/web:1.0", ""), test.a), deployment(2, 1, "r/web:1.0", "kubectl-set", "2", done(2, 1)+available))
		l.want("Deployment/web", 90, "10..70-10..70 info: "+want+" (revision 2, by kubectl-set), complete after at most 1m")
	}
}

// TestPaused: what is changed while a Deployment is paused is one rollout, when it is resumed.
func TestPaused(t *testing.T) {
	paused := func(generation int, image, manager, status string) string {
		return strings.Replace(deployment(generation, 1, image, manager, "1", status), "spec: {", "spec: {paused: true, ", 1)
	}
	l := newLog(t, deployment(1, 1, "r/web:1.0", "kubectl-create", "1", done(1, 1)), replicaSet("a", "r/web:1.0", "replicas: 1"))
	l.put(10, paused(2, "r/web:1.0", "kubectl-rollout", done(1, 1)))
	l.put(20, paused(3, "r/web:1.1", "kubectl-set", done(2, 1)))
	l.put(30, paused(4, "r/web:1.2", "kubectl-edit", done(3, 1)))
	l.want("Deployment/web", 35, "10- info: rollouts of web paused; changed meanwhile: image r/web:1.0 → 1.1, by kubectl-set; image r/web:1.1 → 1.2, by kubectl-edit; rolled out when it is resumed")
	l.put(40, deployment(5, 1, "r/web:1.2", "kubectl-rollout", "1", done(4, 1)))
	l.put(41, replicaSet("c", "r/web:1.2", ""))
	l.put(42, deployment(5, 1, "r/web:1.2", "kubectl-rollout", "2", done(5, 1)))
	l.want("Deployment/web", 60,
		"10-40 info: rollouts of web paused; changed meanwhile: image r/web:1.0 → 1.1, by kubectl-set; image r/web:1.1 → 1.2, by kubectl-edit; resumed by kubectl-rollout after 30s",
		"40-42 info: rollout of web from 1.0 to 1.2 (revision 2, by kubectl-rollout), complete after 2s")
}

// TestStrategies: OnDelete waits for somebody, and Pods below a partition keep what they run.
func TestStrategies(t *testing.T) {
	set := func(generation int, image, strategy, status string) string {
		text := strings.Replace(deployment(generation, 3, image, "kubectl-set", "", status), "kind: Deployment", "kind: StatefulSet", 1)
		return strings.Replace(text, "spec: {", "spec: {updateStrategy: {"+strategy+"}, ", 1)
	}
	const ready = "replicas: 3, readyReplicas: 3, "
	const onDelete, partition = "type: OnDelete", "type: RollingUpdate, rollingUpdate: {partition: 2}"
	l := newLog(t, set(1, "r/web:1.0", onDelete, ready+"observedGeneration: 1, updatedReplicas: 3, currentRevision: a, updateRevision: b"))
	l.put(10, set(2, "r/web:1.1", onDelete, ready+"observedGeneration: 2, updatedReplicas: 0, currentRevision: a, updateRevision: c"))
	l.want("StatefulSet/web", 20, "10- info: rollout of web from 1.0 to 1.1 (by kubectl-set), takes effect as its Pods are deleted (OnDelete): 0 of 3 Pods updated, 3 ready")
	l = newLog(t, set(1, "r/web:1.0", partition, ready+"observedGeneration: 1, updatedReplicas: 1, currentRevision: a, updateRevision: b"))
	l.put(10, set(2, "r/web:1.1", partition, ready+"observedGeneration: 1, updatedReplicas: 1, currentRevision: a, updateRevision: b"))
	l.put(12, set(2, "r/web:1.1", partition, ready+"observedGeneration: 2, updatedReplicas: 0, currentRevision: a, updateRevision: c"))
	l.put(15, set(2, "r/web:1.1", partition, ready+"observedGeneration: 2, updatedReplicas: 1, currentRevision: a, updateRevision: c"))
	l.want("StatefulSet/web", 20, "10-15 info: rollout of web from 1.0 to 1.1 (partition 2, by kubectl-set), complete after 5s")
	const lowered = "type: RollingUpdate, rollingUpdate: {partition: 0}"
	l.put(30, set(3, "r/web:1.1", lowered, ready+"observedGeneration: 2, updatedReplicas: 1, currentRevision: a, updateRevision: c"))
	l.put(33, set(3, "r/web:1.1", lowered, ready+"observedGeneration: 3, updatedReplicas: 3, currentRevision: c, updateRevision: c"))
	l.want("StatefulSet/web", 40, "10-15 info: rollout of web from 1.0 to 1.1 (partition 2, by kubectl-set), complete after 5s",
		"30-33 info: rollout of web (updateStrategy.rollingUpdate.partition 2 → 0), complete after 3s")
	l = newLog(t) // of more Pods than it should have, all have to be updated
	l.initial(set(1, "r/web:1.0", onDelete, ready+"observedGeneration: 1, updatedReplicas: 3, currentRevision: a, updateRevision: b"))
	l.put(10, set(2, "r/web:1.1", onDelete, "replicas: 5, readyReplicas: 5, observedGeneration: 2, updatedReplicas: 3, currentRevision: a, updateRevision: c"))
	l.want("StatefulSet/web", 20, "10- info: rollout of web from 1.0 to 1.1 (by kubectl-set), takes effect as its Pods are deleted (OnDelete): 3 of 3 Pods updated, 5 ready")
}

// TestOnDelete: the template is put back, and a Pod that has the failed one is still told. Pods that
// are created need no deletion.
func TestOnDelete(t *testing.T) {
	set := func(generation int, image, status string) string {
		text := strings.Replace(deployment(generation, 2, image, "kubectl-set", "", status), "kind: Deployment", "kind: StatefulSet", 1)
		return strings.Replace(text, "spec: {", "spec: {updateStrategy: {type: OnDelete}, ", 1)
	}
	of := func(name, status string) string {
		return strings.NewReplacer("kind: ReplicaSet", "kind: StatefulSet", "web-a", "web", "uid-ReplicaSet-web-a", "uid-StatefulSet-web").Replace(pod(name, "web-a", "", "", status))
	}
	l := newLog(t)
	l.put(1, set(1, "r/web:1.0", ""))
	l.want("StatefulSet/web", 5, "1- info: StatefulSet web created with r/web:1.0 (by kubectl-set) requested")
	l.put(2, set(1, "r/web:1.0", "observedGeneration: 1, replicas: 2"))
	l.want("StatefulSet/web", 5, "1- info: StatefulSet web created with r/web:1.0 (by kubectl-set), in progress: 0 of 2 Pods updated, 0 ready")
	l.put(3, of("web-0", running), of("web-1", running))
	l.put(4, set(1, "r/web:1.0", "observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2, currentRevision: a, updateRevision: a"))
	l.put(10, set(2, "r/web:1.1", "observedGeneration: 2, replicas: 2, readyReplicas: 2, currentRevision: a, updateRevision: b"))
	l.remove(20, "Pod/web-1")
	l.put(21, of("web-1", badImage))
	l.put(22, set(2, "r/web:1.1", "observedGeneration: 2, replicas: 2, readyReplicas: 1, updatedReplicas: 1, currentRevision: a, updateRevision: b"))
	l.put(40, set(3, "r/web:1.0", "observedGeneration: 3, replicas: 2, readyReplicas: 1, updatedReplicas: 1, currentRevision: a, updateRevision: a"))
	failed := "rollout of web from 1.0 to 1.1 (by kubectl-set) failed: 1 Pod ErrImagePull (manifest unknown); rolled back to 1.0 by kubectl-set"
	created := "1-4 info: StatefulSet web created with r/web:1.0 (by kubectl-set), complete after 3s"
	l.want("StatefulSet/web", 600, created, "10- failed: "+failed+"; the rollback is not complete at the end of the story, with 1 of 2 ready")
	l.put(60, set(4, "r/web:1.2", "observedGeneration: 4, replicas: 2, readyReplicas: 1, currentRevision: a, updateRevision: c"))
	l.want("StatefulSet/web", 600, created, "10-60 failed: "+failed+"; 1 of 2 ready at its end",
		"21- failed: 11s after StatefulSet web was changed (image r/web:1.0 → 1.1, updated replicas 2 → 0, status.updateRevision a → b, by kubectl-set): StatefulSet web: 1 Pod ErrImagePull (manifest unknown); still so at the end of the story, with 1 of 2 ready",
		"60- info: rollout of web from 1.0 to 1.2 (by kubectl-set), takes effect as its Pods are deleted (OnDelete): 0 of 2 Pods updated, 1 ready")
}

// TestTwoEdits: what the controller has not seen was not rolled out, but a workload is created with what
// its first version has.
func TestTwoEdits(t *testing.T) {
	l := newLog(t, deployment(1, 1, "r/web:1.0", "kubectl-create", "1", done(1, 1)), replicaSet("a", "r/web:1.0", "replicas: 1"))
	l.put(10, deployment(2, 1, "r/web:1.1", "kubectl-set", "1", done(1, 1)))
	l.put(11, deployment(3, 1, "r/web:1.2", "kubectl-edit", "1", done(1, 1)))
	l.put(13, deployment(3, 1, "r/web:1.2", "kubectl-edit", "2", done(3, 1)))
	if s := l.want("Deployment/web", 60, "10-13 info: rollout of web from 1.0 to 1.2 (revision 2, by kubectl-set, kubectl-edit), complete after 3s"); len(s.Episodes[0].Entries) != 3 {
		t.Errorf("%+v", s.Episodes[0].Entries)
	}
	l = newLog(t)
	l.put(5, deployment(1, 2, "r/web:1", "kubectl-create", "", ""))
	l.put(15, deployment(2, 2, "r/web:2", "kubectl-set", "", ""))
	l.put(16, deployment(2, 2, "r/web:2", "kubectl-set", "1", done(2, 2)))
	l.want("Deployment/web", 60,
		"5-15 info: Deployment web created with r/web:1 (by kubectl-create) did not complete; replaced by revision 1 (by kubectl-set), which was complete after 1s",
		"15-16 info: rollout of web from 1 to 2 (revision 1, by kubectl-set), complete after 1s")
}
