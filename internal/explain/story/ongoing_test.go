// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// unready returns a Pod of web-a that runs and is not ready since a moment.
func unready(name, since string) string {
	return pod(name, "web-a", "", "", fmt.Sprintf(`phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: %q}], containerStatuses: [{name: web, state: {running: {startedAt: "2026-01-02T13:00:00Z"}}}]`, since))
}

// TestOutlastsNode: a lost Node explains that its Pods are not ready as long as it is lost. What
// lasts is told as that, and first, whatever is over.
func TestOutlastsNode(t *testing.T) {
	lost := func() *log {
		l := newLog(t, node("True", "KubeletReady", "", ""), deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)), replicaSet("a", "r/web:1.0", "replicas: 2"))
		l.put(10, node("Unknown", "NodeStatusUnknown", "", ""))
		for _, name := range []string{"web-a-1", "web-a-2"} {
			l.initial(pod(name, "web-a", "", "", running))
			l.put(10.5, unready(name, "2026-01-02T14:00:10Z"))
		}
		return l
	}
	l := lost()
	l.want("Deployment/web", 16, "10- failed: Node n1 NotReady (NodeStatusUnknown); on it 2 Pods of Deployment web; still so at the end of the story")
	l.put(17, node("True", "KubeletReady", "", ""))
	l.put(70, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", "observedGeneration: 1, replicas: 2, updatedReplicas: 2"))
	s := l.want("Deployment/web", 120,
		"10-17 failed: Node n1 NotReady (NodeStatusUnknown); on it 2 Pods of Deployment web; over after 7s",
		"10.5- warning: Deployment web: 2 Pods not ready; still so at the end of the story, with 0 of 2 ready")
	if m := main(s); !m.Ongoing {
		t.Errorf("the main episode is %q", m.Title)
	}
	l = lost() // the Pods are ready again soon after the Node
	l.put(17, node("True", "KubeletReady", "", "")).put(20, pod("web-a-1", "web-a", "", "", running)).put(21, pod("web-a-2", "web-a", "", "", running))
	l.want("Deployment/web", 120, "10-17 failed: Node n1 NotReady (NodeStatusUnknown); on it 2 Pods of Deployment web; over after 7s")
}

// TestBegunBefore: what fails all the time is told even if nothing changes in the span.
func TestBegunBefore(t *testing.T) {
	for name, test := range map[string]struct {
		id, text, want string
	}{
		"crash":     {"Pod/web", alone("web", "", backOff), "Pod web: CrashLoopBackOff (exit 1: no database)"},
		"image":     {"Pod/web", alone("web", "", badImage), "Pod web: ErrImagePull (manifest unknown)"},
		"not ready": {"Pod/web-a-1", unready("web-a-1", "2026-01-02T13:50:00Z"), "ReplicaSet web-a: 1 Pod not ready"},
		"node":      {"Node/n1", node("Unknown", "NodeStatusUnknown", "", ""), "Node n1 NotReady (NodeStatusUnknown)"},
		"terminates": {"Pod/web", `{kind: Pod, metadata: {name: web, deletionTimestamp: "2026-01-02T13:59:00Z"}, spec: {nodeName: n1, containers: [{name: web, image: x}]}, status: {phase: Running}}`,
			"Pod web terminates, 1m40s longer than its grace period"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, test.text)
			s := l.tell(test.id, 40)
			if m := main(s); !m.Ongoing || m.Title != test.want+"; still so at the end of the story" || m.BegunBefore != api.StoryBegin {
				t.Errorf("%q", lines(s))
			}
		})
	}
	// So is what is no bad news.
	for id, test := range map[string]struct{ text, want, says string }{
		"Node/n1":         {node("True", "", "", "unschedulable: true"), "Node n1 cordoned", "spec.unschedulable"},
		"Deployment/web":  {strings.Replace(deployment(1, 1, "r/web:1.0", "m", "1", done(1, 1)), "spec: {", "spec: {paused: true, ", 1), "rollouts of web paused", "spec.paused"},
		"StatefulSet/web": {strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "spec: {replicas", "spec: {updateStrategy: {type: OnDelete}, replicas").Replace(deployment(2, 2, "r/web:1.1", "m", "", "observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b")), "rollout of web to r/web:1.1, takes effect as its Pods are deleted (OnDelete): 1 of 2 Pods updated, 2 ready", "status.updatedReplicas"},
		"DaemonSet/web":   {strings.NewReplacer("kind: Deployment", "kind: DaemonSet", "spec: {replicas", "spec: {updateStrategy: {type: OnDelete}, replicas").Replace(deployment(2, 2, "r/web:1.1", "m", "", "observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberAvailable: 2, numberReady: 2, updatedNumberScheduled: 1")), "rollout of web to r/web:1.1, takes effect as its Pods are deleted (OnDelete): 1 of 2 Pods updated, 2 available", "status.updatedNumberScheduled"},
	} {
		l := newLog(t, test.text)
		if id == "Deployment/web" {
			l.initial(replicaSet("a", "r/web:1.0", ""))
		}
		s := l.want(id, 40, "..0- info: "+test.want)
		if c := main(s).Causes; len(c) != 1 || c[0].Field != test.says {
			t.Errorf("%s: %+v", id, c)
		}
	}
	// What is known of it begins later than the span.
	l := newLog(t, alone("web", "", backOff))
	l.objects["Pod/web"].Since = at(10)
	l.want("Pod/web", 40, "..10- failed: Pod web: CrashLoopBackOff (exit 1: no database); still so at the end of the story")
	l = newLog(t) // it starts
	l.initial(unready("web-a-1", "2026-01-02T13:59:50Z"))
	l.want("Pod/web-a-1", 40)
}

// TestDeletedIsNotRecovered: that a Pod that failed was deleted says nothing about the one that
// replaces it, which may not be in the story: the workload says whether it is ready. That it was
// for a moment is no recovery, but too few are ready only since then.
func TestDeletedIsNotRecovered(t *testing.T) {
	const status = "observedGeneration: 2, replicas: 1, updatedReplicas: 1"
	web := func(ready bool) string {
		if ready {
			return deployment(2, 1, "r/web:1.1", "kubectl-set", "2", done(2, 1))
		}
		return deployment(2, 1, "r/web:1.1", "kubectl-set", "2", status+`, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: m}]`)
	}
	crashing := func() *log {
		l := newLog(t, deployment(1, 1, "r/web:1.0", "kubectl-create", "1", done(1, 1)))
		l.put(10, deployment(2, 1, "r/web:1.1", "kubectl-set", "1", done(1, 1))).put(10.1, replicaSet("b", "r/web:1.1", ""))
		l.put(11, pod("web-b-1", "web-b", "", "", running)).put(12, web(true)).put(13, pod("web-b-1", "web-b", "", "", backOff)).put(14, web(false))
		l.remove(36, "Pod/web-b-1")
		return l
	}
	const failed = "rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set), complete after 2s, then failed 1s later: 1 Pod CrashLoopBackOff (exit 1: no database), until deleted; 0 of 1 ready at its end"
	const short = "Deployment web: too few Pods are ready; still so at the end of the story, with 0 of 1 ready"
	l := crashing()
	l.want("Pod/web-b-1", 53, "10-36 failed: "+failed, "14- failed: "+short)
	l.put(53, web(true)) // its replacement runs, for a second
	l.want("Pod/web-b-1", 54.5, "10-36 failed: "+failed+", and 1 of 1 at the end of the story")
	l.put(55, web(false))
	l.want("Deployment/web", 100, "10-36 failed: "+failed, "55- failed: "+short) // not since 14
	l.want("Pod/web-b-1", 100, "10-36 failed: "+failed)                          // it is gone
	l = crashing()
	l.put(53, web(true))
	l.want("Pod/web-b-1", 90, "10-36 failed: "+failed+", and 1 of 1 after another 17s")
}

// TestRunsAgain: a Pod that runs after a crash, and not for a minute, has not recovered; it is not "still" OOMKilled.
func TestRunsAgain(t *testing.T) {
	l := newLog(t, alone("web", "", ready))
	l.put(10, alone("web", "", oomKilled))
	l.want("Pod/web", 11, "10- failed: Pod web: OOMKilled (exit 137), 1 restart; still so at the end of the story")
	l.put(12, alone("web", "", again))
	l.want("Pod/web", 20, "10- failed: Pod web: OOMKilled (exit 137), 1 restart; Running after a crash at the end of the story")
	l.want("Pod/web", 73, "10-12 failed: Pod web: OOMKilled (exit 137), 1 restart, recovered after 2s")
	l.put(130, alone("web", "", strings.Replace(running, "Running", "Failed, reason: Evicted", 1)))
	l.want("Pod/web", 140, "10-12 failed: Pod web: OOMKilled (exit 137), 1 restart, recovered after 2s", "130- failed: Pod web: Evicted; still so at the end of the story")
}

// TestDeletedBetweenCrashes: a Pod that is deleted while it runs between two crashes has not
// recovered, however it ends.
func TestDeletedBetweenCrashes(t *testing.T) {
	const deleted = `{kind: Pod, metadata: {name: web, deletionTimestamp: "2026-01-02T14:00:50Z"}, spec: {nodeName: n1, containers: [{name: web, image: x}]}, status: {%s}}`
	const done = `phase: Succeeded, containerStatuses: [{name: web, restartCount: 1, state: {terminated: {exitCode: 0, reason: Completed}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]`
	l := newLog(t, alone("web", "", ready))
	l.put(10, alone("web", "", oomKilled)).put(12, alone("web", "", again)).put(20, fmt.Sprintf(deleted, again)).put(21, fmt.Sprintf(deleted, done))
	l.remove(22, "Pod/web")
	l.want("Pod/web", 80, "10-20 failed: Pod web: OOMKilled (exit 137), 1 restart, until deleted")
}

// TestOverAtBegin: what is over as the story begins is not its first line.
func TestOverAtBegin(t *testing.T) {
	l := newLog(t, node("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", ""), alone("web", "", ready))
	l.put(0.4, node("True", "KubeletReady", "", "")).put(10, alone("web", "", notReady)).put(20, alone("web", "", ready))
	s := l.want("Pod/web", 60, "..0-0.4 failed: Node n1 NotReady (NodeStatusUnknown: Kubelet stopped posting node status); on it Pod web; over after an unknown time",
		"10-20 warning: Pod web: not ready (ContainersNotReady: containers with unready status: [web]), recovered after 10s")
	if m := main(s); m.Kind != api.EpisodeFailure {
		t.Errorf("the main episode is %q", m.Title)
	}
}

// TestShortage: that too few Pods are ready is told after 30 seconds. Until then a Pod is replaced,
// as many are; one that fails is told at once.
func TestShortage(t *testing.T) {
	l := newLog(t, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)))
	l.put(10, deployment(1, 2, "r/web:1.0", "kubectl-create", "1", "observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1"))
	l.want("Deployment/web", 39, "10-10 info: Deployment web: ready replicas 2 → 1; available replicas 2 → 0")
	l.want("Deployment/web", 40, "10- warning: Deployment web: too few Pods are ready; still so at the end of the story, with 1 of 2 ready")
}

// TestGap: what is first seen after a time without observation was so at some time in it.
func TestGap(t *testing.T) {
	start := func() *log {
		l := newLog(t, deployment(1, 1, "r/web:1.0", "kubectl-create", "1", done(1, 1)), replicaSet("a", "r/web:1.0", "replicas: 1"), pod("web-a-1", "web-a", "", "", running))
		l.gap = at(10).In(time.FixedZone("somewhere", 3600))
		return l
	}
	l := start()
	l.put(70, deployment(2, 1, "r/web:1.1", "kubectl-set", "2", done(2, 1)))
	l.want("Deployment/web", 90, "10..70-10..70 info: rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set), complete after at most 1m")
	l = start()
	l.put(70, deployment(2, 1, "r/web:1.1", "kubectl-set", "2", "observedGeneration: 2"))
	l.gap = time.Time{}
	l.put(75, deployment(2, 1, "r/web:1.1", "kubectl-set", "2", done(2, 1)))
	l.want("Deployment/web", 90, "10..70-75 info: rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set), complete after 5s to 1m5s")
	l = start()
	l.put(70, pod("web-a-1", "web-a", "", "", backOff))
	l.gap = time.Time{}
	l.put(95, pod("web-a-1", "web-a", "", "", running))
	l.want("Pod/web-a-1", 120, "10..70-95 failed: Deployment web: 1 Pod CrashLoopBackOff (exit 1: no database), 1 restart, recovered after 25s to 1m25s")
	l = start()
	l.remove(70, "Deployment/web")
	l.want("Deployment/web", 90, "10..70-10..70 info: Deployment web deleted")

	l = newLog(t)
	l.put(5, alone("web", "", backOff))
	l.gap = at(10)
	l.remove(70, "Pod/web")
	l.want("Pod/web", 90, "5-10..70 failed: Pod web: CrashLoopBackOff (exit 1: no database), until deleted")
	l = newLog(t) // it fails twice in the gap, and is deleted in it
	l.initial(alone("web", "", running))
	l.gap = at(10)
	for _, status := range []string{backOff, running, backOff} {
		l.put(70, alone("web", "", status))
	}
	l.remove(70, "Pod/web")
	l.want("Pod/web", 90, "10..70-10..70 failed: Pod web: CrashLoopBackOff (exit 1: no database), 2 restarts, until deleted")
	l = newLog(t) // what began before the story, and ended in the gap
	l.initial(node("Unknown", "NodeStatusUnknown", "", ""))
	l.gap = at(10)
	l.put(70, node("True", "KubeletReady", "", ""))
	l.want("Node/n1", 90, "..0-10..70 failed: Node n1 NotReady (NodeStatusUnknown); over after at least 10s")
	l = newLog(t, alone("web", usesConfig, ready)) // what was changed after the crash, as its resourceVersion says
	l.gap = at(10)
	l.put(70.1, alone("web", usesConfig, backOff)).put(70, `{kind: ConfigMap, metadata: {name: settings}, data: {a: b}}`)
	l.objects["ConfigMap/settings"].Versions[0].Inferred = false
	l.want("Pod/web", 90, "10..70.1- failed: Pod web: CrashLoopBackOff (exit 1: no database), 1 restart; at most 1m later ConfigMap settings was created; still so at the end of the story")
	l = newLog(t) // created and deleted in the gap, of which the ReplicaSets were listed first
	l.gap = at(10)
	l.put(70.1, deployment(1, 1, "r/web:1.0", "m", "1", done(1, 1))).put(70, replicaSet("a", "r/web:1.0", "replicas: 1")).remove(70.1, "Deployment/web")
	l.remove(70, "ReplicaSet/web-a")
	l.want("Deployment/web", 90, "10..70.1-10..70.1 info: Deployment web created with r/web:1.0 (revision 1, by m), complete after at most 1m", "10..70.1-10..70.1 info: Deployment web deleted")
}

// TestRolledBackInGap: a Pod that fails is one of the rollout whose revision it has, whichever watch saw
// the end of the gap first.
func TestRolledBackInGap(t *testing.T) {
	daemons := strings.NewReplacer("kind: Deployment", "kind: DaemonSet", "annotations: {", `annotations: {deprecated.daemonset.template.generation: "`, "deployment.kubernetes.io/revision: \"", "",
		"updatedReplicas", "desiredNumberScheduled: 1, updatedNumberScheduled", "readyReplicas", "numberReady", "availableReplicas", "numberAvailable", "ReplicaSet, name: web-b", "DaemonSet, name: web", "uid-ReplicaSet-web-b", "uid-DaemonSet-web")
	for id, of := range map[string]*strings.Replacer{"Deployment/web": strings.NewReplacer(), "DaemonSet/web": daemons} {
		for i := range 8 { // whether the Pods came first, lists found all, and the rollout had begun before the gap
			second, listed, seen := 70+float64(i%2), i&2 != 0, i&4 != 0
			l := newLog(t, of.Replace(deployment(1, 1, "r/web:1.0", "m", "1", done(1, 1))), replicaSet("a", "r/web:1.0", ""), replicaSet("b", "r/web:1.1", ""))
			l.watched = !listed
			begin := 5.
			if !seen {
				begin, l.gap = 70.5, at(10)
			}
			l.put(begin, of.Replace(deployment(2, 1, "r/web:1.1", "m", "2", "observedGeneration: 2, replicas: 1, updatedReplicas: 1")))
			l.gap = at(10)
			l.put(second, of.Replace(pod("web-b-1", "web-b", `, labels: {pod-template-generation: "2"}`, "", backOff)))
			l.put(70.5, of.Replace(deployment(3, 1, "r/web:1.0", "m", "3", done(3, 1)))).remove(second, "Pod/web-b-1")
			got := fmt.Sprint(lines(l.tell(id, 90)))
			if !strings.Contains(got, " failed: 1 Pod CrashLoopBackOff (exit 1: no database); rolled back to 1.0 by m, complete after at most 1m") || strings.Contains(got, "image") {
				t.Errorf("%s %d: %q", id, i, got)
			}
		}
	}
}

// TestTwice: what happens again after all Pods were ready in between is another episode, and what was ready
// for a short time was ready.
func TestTwice(t *testing.T) {
	const deleted, noRoom = "Deployment web: 2 of 2 Pods deleted, replaced after 2s; 2 of 2 ready at its end (0 at the lowest)", "Deployment web: 2 Pods Unschedulable (0/3 nodes are available: 3 Insufficient cpu), scheduled after 1s"
	for name, test := range map[string]struct {
		status string // of the first Pods that replace deleted ones
		pause  float64
		want   []string
	}{
		"Pods deleted":  {running, 10, []string{"10-12 warning: " + deleted, "20-22 warning: " + deleted}},
		"4 Pods":        {running, 4, []string{"10-16 warning: Deployment web: 4 Pods deleted, replaced after 6s"}},
		"replaced":      {notReady, 10, []string{"10-22 warning: Deployment web: 4 Pods deleted, replaced after 12s"}},
		"Unschedulable": {noNode, 20, []string{"11-12 warning: " + noRoom, "31-32 warning: " + noRoom}},
		"CrashLoop":     {backOff, 20, []string{"11-32 failed: Deployment web: 4 Pods CrashLoopBackOff (exit 1: no database), recovered after 21s"}},
	} {
		l := newLog(t, deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)), strings.Replace(replicaSet("a", "r/web:1.0", "replicas: 2"), "spec: {", "spec: {replicas: 2, ", 1))
		pods := func(i int, status string) (all []string) {
			return []string{pod(fmt.Sprintf("web-%d-0", i), "web-a", "", "", status), pod(fmt.Sprintf("web-%d-1", i), "web-a", "", "", status)}
		}
		l.initial(pods(0, running)...)
		for i, status := range []string{test.status, strings.Replace(test.status, notReady, running, 1)} {
			begin := 10 + test.pause*float64(i)
			l.remove(begin, fmt.Sprintf("Pod/web-%d-0", i), fmt.Sprintf("Pod/web-%d-1", i))
			l.put(begin+.5, deployment(1, 2, "r/web:1.0", "m", "1", "observedGeneration: 1, replicas: 2, updatedReplicas: 2"))
			l.put(begin+1, pods(i+1, status)...)
			if status != notReady {
				l.put(begin+2, append(pods(i+1, running), deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)))...)
			}
		}
		got := slices.DeleteFunc(lines(l.tell("Deployment/web", 90)), func(line string) bool { return !strings.Contains(line, name) })
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestAfter: how an episode ended is not said by what came before it in a gap, or of a later change.
func TestAfter(t *testing.T) {
	l := newLog(t, deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)), replicaSet("a", "r/web:1.0", "replicas: 2"))
	l.put(10, pod("web-a-1", "web-a", "", "", backOff), deployment(1, 2, "r/web:1.0", "m", "1", done(1, 1)))
	l.put(12, pod("web-a-1", "web-a", "", "", running)).put(13, deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)))
	l.put(20, deployment(2, 2, "r/web:1.1", "m", "1", "observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1"))
	l.put(60, deployment(2, 2, "r/web:1.1", "m", "1", done(2, 2)))
	if got := lines(l.tell("Deployment/web", 120))[0]; !strings.HasSuffix(got, "recovered after 2s; 1 of 2 ready at its end, and 2 of 2 after another 1s") {
		t.Error(got)
	}
	l = newLog(t, deployment(1, 1, "r/web:1.0", "m", "1", done(1, 1))) // rolled back while there are no Pods
	l.put(10, deployment(2, 1, "r/web:1.1", "m", "2", done(2, 1))).put(10.1, replicaSet("b", "r/web:1.1", ""))
	l.put(11, pod("web-b-1", "web-b", "", "", backOff)).put(20, deployment(3, 0, "r/web:1.1", "m", "2", done(3, 0))).remove(21, "Pod/web-b-1")
	l.put(30, deployment(4, 0, "r/web:1.0", "m", "3", done(4, 0)))
	if got := fmt.Sprint(lines(l.tell("Deployment/web", 60))); !strings.Contains(got, ", until deleted; scaled to 0 by m after 10s; rolled back to 1.0 by m, complete after less than 1s") {
		t.Error(got)
	}
	l = newLog(t, deployment(1, 2, "r/web:1.0", "m", "1", "observedGeneration: 1, replicas: 2"), node("True", "", "", ""), pod("old", "a", "", "", running), pod("lost", "a", "", "", running))
	l.gap, l.watched = at(5), true
	l.put(70, deployment(1, 2, "r/web:1.0", "m", "1", "observedGeneration: 1, replicas: 2, readyReplicas: 0"), deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)))
	l.put(70, deployment(2, 2, "r/web:1.1", "m", "2", "observedGeneration: 2, replicas: 3, updatedReplicas: 1, readyReplicas: 2"), replicaSet("b", "r/web:1.1", ""), pod("web-b-1", "web-b", "", "", badImage))
	l.remove(70, "Pod/old", "Node/n1", "Pod/lost")
	l.first("Deployment/web", 90, "…with 2 of 2 ready")
	l.first("Node/n1", 90, "Node n1 deleted; on it 2 Pods (1 of ReplicaSet a,…")
}
