// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRecoveredInRollout: what has recovered is not "still so" because the rollout is not complete: its Pods are
// replaced as they are deleted, are not available for long enough, or it waits for another one.
func TestRecoveredInRollout(t *testing.T) {
	const waits = "observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 1"
	begin := func() *log {
		l := newLog(t, deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)), replicaSet("a", "r/web:1.0", ""))
		l.put(10, deployment(2, 2, "r/web:1.1", "m", "2", waits)).put(10.1, replicaSet("b", "r/web:1.1", ""))
		return l.put(11, pod("web-b-1", "web-b", "", "", badImage))
	}
	const failed = "rollout of web from 1.0 to 1.1 (revision 2, by m) failed: 1 Pod ErrImagePull (manifest unknown)"
	l := begin()
	l.want("Deployment/web", 30, "10- failed: "+failed+"; still so at the end of the story, with 2 of 2 ready")
	l.put(15, pod("web-b-1", "web-b", "", "", running))
	l.want("Deployment/web", 30, "10- failed: "+failed+", recovered after 5s; not complete at the end of the story, with 2 of 2 ready")
	l.put(40, deployment(3, 2, "r/web:1.2", "m", "3", done(3, 2)))
	l.want("Deployment/web", 60, "10-40 failed: "+failed+", recovered after 5s, did not complete; replaced by revision 3 (by m), which was complete after less than 1s; 2 of 2 ready all the time",
		"40-40 info: rollout of web from 1.1 to 1.2 (revision 3, by m), complete after less than 1s")
	l = begin() // the Pod that recovered is not all of them
	l.put(12, pod("web-b-2", "web-b", "", "", badImage)).put(15, pod("web-b-1", "web-b", "", "", running))
	l.first("Deployment/web", 30, strings.Replace(failed, "1 Pod", "2 Pods", 1)+"; still so at the end of the story, with 2 of 2 ready")
	l = begin() // one that was deleted has not recovered
	l.remove(15, "Pod/web-b-1")
	l.first("Deployment/web", 30, failed+"; still so at the end of the story, with 2 of 2 ready")
}

// TestRevisionWhilePaused: the controller numbers the template that a paused Deployment has, which is not that of
// the rollout before.
func TestRevisionWhilePaused(t *testing.T) {
	l := newLog(t, deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)), replicaSet("a", "r/web:1.0", ""))
	l.put(10, deployment(2, 2, "r/web:bad", "m", "1", done(1, 2))).put(10.1, replicaSet("b", "r/web:bad", ""))
	l.put(10.2, deployment(2, 2, "r/web:bad", "m", "2", "observedGeneration: 2, updatedReplicas: 1, readyReplicas: 2"))
	l.put(11, pod("web-b-1", "web-b", "", "", badImage))
	paused := func(generation int, image, revision string) string {
		return strings.Replace(deployment(generation, 2, image, "m", revision, "observedGeneration: 2, updatedReplicas: 1, readyReplicas: 2"), "spec: {replicas", "spec: {paused: true, replicas", 1)
	}
	l.put(15, paused(3, "r/web:bad", "2")).put(16, paused(4, "r/web:1.0", "2")).put(16.1, paused(4, "r/web:1.0", "3"))
	l.put(20, deployment(5, 2, "r/web:1.0", "m", "3", "observedGeneration: 5, updatedReplicas: 2, replicas: 3"))
	l.remove(20.5, "Pod/web-b-1").put(21, deployment(5, 2, "r/web:1.0", "m", "3", done(5, 2)))
	l.first("Deployment/web", 60, "rollout of web from 1.0 to bad (revision 2, by m) failed: 1 Pod ErrImagePull (manifest unknown); rolled back to 1.0 by m, complete after 1s; …")
}

// TestAgainUnschedulable: between two Pods that do not fit, the workload was complete, whose other Pods were ready
// all the time.
func TestAgainUnschedulable(t *testing.T) {
	const unschedulable = `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no node}]`
	for name, complete := range map[string]bool{"complete": true, "not complete": false} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, deployment(1, 1, "r/web:1.0", "m", "1", done(1, 1)), replicaSet("a", "r/web:1.0", ""), replicaSet("x", "r/web:x", ""))
			l.initial(pod("web-a-1", "web-a", "", "", running))
			l.put(10, pod("web-x-1", "web-x", "", "", unschedulable)).remove(20, "Pod/web-x-1")
			if complete {
				l.put(21, deployment(1, 1, "r/web:1.0", "m", "1", done(1, 1)+", conditions: []"))
			}
			l.put(40, pod("web-x-2", "web-x", "", "", unschedulable))
			want, n := "10- failed: Deployment web: 2 Pods", 1
			if complete {
				want, n = "40- failed: Deployment web: 1 Pod", 2
			}
			all := slices.DeleteFunc(lines(l.tell("Deployment/web", 80)), func(line string) bool { return !strings.Contains(line, "Unschedulable") })
			if len(all) != n || all[n-1] != want+" Unschedulable (no node); still so at the end of the story, with 1 of 1 ready" {
				t.Errorf("%q", all)
			}
		})
	}
}

// TestJobInGap: a Job and its Pods come from different watches, and so at different times after a gap: a Pod that is
// seen to have failed after its Job had ended is no failure of its own.
func TestJobInGap(t *testing.T) {
	for end, want := range map[string][]string{
		"Failed":   {"10..30-10..30 failed: Job load failed: BackoffLimitExceeded after at most 20s"},
		"Complete": {"10..30-10..30 info: Job load complete after at most 20s", "11..32-11..32 failed: Job load: 1 Pod Failed, then its Job completed"},
	} {
		t.Run(end, func(t *testing.T) {
			l := newLog(t)
			l.gap = at(10)
			l.put(30, fmt.Sprintf(`{kind: Job, metadata: {name: load, creationTimestamp: "2026-01-02T14:00:15Z"}, status: {conditions: [{type: %s, status: "True", reason: BackoffLimitExceeded}]}}`, end))
			l.gap = l.gap.Add(time.Second)
			l.put(32, `{kind: Pod, metadata: {name: load-1, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: load, uid: uid-Job-load, controller: true}]}, spec: {nodeName: n1}, status: {phase: Failed}}`)
			l.want("Job/load", 60, want...)
		})
	}
}

// TestReplacementReplaced: a Pod that replaces a deleted one may be replaced itself before it is ready.
func TestReplacementReplaced(t *testing.T) {
	db := func(status string) string {
		return strings.Replace(deployment(1, 2, "r/web:1.0", "m", "", status+", updateRevision: a"), "kind: Deployment", "kind: StatefulSet", 1)
	}
	one := func(uid, meta, status string) string {
		return fmt.Sprintf(`{kind: Pod, metadata: {name: web-1, uid: %s, labels: {controller-revision-hash: a}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: uid-StatefulSet-web, controller: true}]%s}, spec: {nodeName: n1, containers: [{name: web, image: x}]}, status: {%s}}`, uid, meta, status)
	}
	const terminating = `, deletionTimestamp: "2026-01-02T14:00:10Z"`
	l := newLog(t, db(done(1, 2)), one("first", "", running))
	l.put(10, one("first", terminating, running)).put(10.5, db("observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1")).remove(11, "Pod/web-1")
	l.put(11.1, one("second", "", "phase: Pending")).put(15, one("second", `, deletionTimestamp: "2026-01-02T14:00:15Z", labels: {controller-revision-hash: b}`, "phase: Pending")).remove(15.1, "Pod/web-1")
	l.put(15.2, one("third", "", "phase: Pending")).put(17, one("third", "", running)).put(17.1, db(done(1, 2)))
	if got := main(l.tell("StatefulSet/web", 60)).Title; strings.Contains(got, "none replaced") || !strings.Contains(got, "replaced after 7s") {
		t.Error(got)
	}
}

// TestLaterJobs: the first line of a CronJob's story says what came of the Jobs after the one that it is about.
func TestLaterJobs(t *testing.T) {
	l := newLog(t, `{kind: CronJob, metadata: {name: tick}}`)
	job := func(n int, end string) {
		const text = `{kind: Job, metadata: {name: tick-%d, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: tick, uid: uid-CronJob-tick, controller: true}]}, status: {conditions: [%s]}}`
		l.put(float64(60*n), fmt.Sprintf(text, n, ""))
		l.put(float64(60*n+3), fmt.Sprintf(text, n, fmt.Sprintf(`{type: %s, status: "True", reason: BackoffLimitExceeded}`, end)))
	}
	const first = "Job tick-1 failed: BackoffLimitExceeded after 3s"
	for i, want := range []string{"", "; 1 more Job failed; the last Job failed", "; 1 more Job failed; the last Job was complete", "; 2 more Jobs failed; the last Job failed"} {
		job(i+1, map[bool]string{true: "Complete", false: "Failed"}[i == 2])
		l.first("CronJob/tick", float64(60*i+100), first+want)
	}
}
