// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestGap: what is first seen after a time without observation was so at some time in it.
func TestGap(t *testing.T) {
	start := func() *log {
		l := newLog(t, deployment(1, 1, "r/web:1.0", "kubectl-create", "1", done(1, 1)), replicaSet("a", "r/web:1.0", "replicas: 1"))
		l.initial(pod("web-a-1", "web-a", "", "", running))
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

	l = newLog(t) // created and deleted in the gap, of which the ReplicaSets were listed first
	l.gap = at(10)
	l.put(70.1, deployment(1, 1, "r/web:1.0", "m", "1", done(1, 1)))
	l.put(70, replicaSet("a", "r/web:1.0", "replicas: 1"))
	l.remove(70.1, "Deployment/web")
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
			if l.gap = at(10); seen {
				l.gap = time.Time{}
			}
			l.put(map[bool]float64{true: 5, false: 70.5}[seen], of.Replace(deployment(2, 1, "r/web:1.1", "m", "2", "observedGeneration: 2, replicas: 1, updatedReplicas: 1")))
			l.gap = at(10)
			l.put(second, of.Replace(pod("web-b-1", "web-b", `, labels: {pod-template-generation: "2"}`, "", backOff)))
			l.put(70.5, of.Replace(deployment(3, 1, "r/web:1.0", "m", "3", done(3, 1))))
			l.remove(second, "Pod/web-b-1")
			for _, o := range l.objects {
				for i := range o.Versions {
					o.Versions[i].Inferred = listed && !o.Versions[i].NotBefore.IsZero()
				}
			}
			const failed = " failed: 1 Pod CrashLoopBackOff (exit 1: no database); rolled back to 1.0 by m, complete after at most 1m"
			if got := lines(l.tell(id, 90)); len(got) == 0 || !strings.Contains(strings.Join(got, "; "), failed) || strings.Contains(fmt.Sprint(got), "image") {
				t.Errorf("%s %d: %q", id, i, got)
			}
		}
	}
}
