// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/story"
)

// alone returns a Pod without a controller.
func alone(name, spec, status string) string {
	return fmt.Sprintf(`{kind: Pod, metadata: {name: %s}, spec: {nodeName: n1, containers: [{name: web, image: x%s}]}, status: {%s}}`, name, spec, status)
}

const (
	ready       = `phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true, state: {running: {startedAt: "2026-01-02T14:00:00Z"}}}]`
	notReady    = `phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [web]"}], containerStatuses: [{name: web, state: {running: {startedAt: "2026-01-02T14:00:00Z"}}}]`
	oomKilled   = `phase: Running, containerStatuses: [{name: web, restartCount: 1, state: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-01-02T14:00:10Z"}}}]`
	again       = `phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true, restartCount: 1, state: {running: {startedAt: "2026-01-02T14:00:12Z"}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-01-02T14:00:10Z"}}}]`
	evicted     = `phase: Failed, reason: Evicted, message: "The node was low on resource: memory. "`
	noNode      = `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient cpu."}]`
	disruption  = `phase: Running, conditions: [{type: DisruptionTarget, status: "True", reason: %s, message: "%s"}]`
	badImage    = `phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ErrImagePull, message: "manifest unknown"}}}]`
	badConfig   = `phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: CreateContainerConfigError, message: "configmap \"settings\" not found"}}}]`
	usesConfig  = `, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: keys}}]`
	memoryLimit = `, resources: {limits: {memory: 64Mi}}`
)

// TestFailures: a Pod that fails without a rollout is an episode with the reason that its status has.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name   string
		states []string // ten seconds apart
		event  []string // type, reason, message, at 11 s
		want   string
	}{
		{"out of memory", []string{oomKilled, again, again}, nil, "10-20 failed: Pod web: OOMKilled (exit 137, memory limit 64Mi), 1 restart, recovered after 10s"},
		{"crash", []string{crashed, backOff}, nil, "10- failed: Pod web: CrashLoopBackOff (exit 1: no database), 1 restart; still so at the end of the story"},
		{"image", []string{badImage, ready}, nil, "10-20 failed: Pod web: ErrImagePull (manifest unknown), recovered after 10s"},
		{"configuration", []string{badConfig}, nil, `10- failed: Pod web: CreateContainerConfigError (configmap "settings" not found); still so at the end of the story`},
		{"kubelet", []string{evicted}, nil, "10- failed: Pod web: Evicted (The node was low on resource: memory); still so at the end of the story"},
		{"no node, for long", []string{noNode, noNode, noNode, noNode, noNode}, nil, "10- failed: Pod web: Unschedulable (0/3 nodes are available: 3 Insufficient cpu); still so at the end of the story"},
		{"no node, for a moment", []string{noNode, ready}, nil, "10-20 warning: Pod web: Unschedulable (0/3 nodes are available: 3 Insufficient cpu), scheduled after 10s"},
		{"no node, and another reason in passing", []string{noNode, noNode, strings.Replace(noNode, "3 Insufficient cpu", "1 node(s) had untolerated taint(s)", 1), ready}, nil, "10-40 warning: Pod web: Unschedulable (0/3 nodes are available: 3 Insufficient cpu), scheduled after 30s"},
		{"not ready", []string{notReady, ready}, nil, "10-20 warning: Pod web: not ready (ContainersNotReady: containers with unready status: [web]), recovered after 10s"},
		{"readiness probe", []string{notReady, ready}, []string{"Warning", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"},
			"10-20 failed: Pod web: not ready (Readiness probe failed: HTTP probe failed with statuscode: 503), recovered after 10s"},
		{"volume", []string{"phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]", ready}, []string{"Warning", "FailedMount", "configmap not found"},
			"10-20 failed: Pod web: FailedMount (configmap not found), recovered after 10s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLog(t, alone("web", memoryLimit, ready))
			for i, s := range test.states {
				l.put(float64(10+10*i), alone("web", memoryLimit, s))
			}
			if e := test.event; e != nil {
				l.event(11, "web.1", e[0], e[1], e[2], "Pod", "web")
			}
			s := l.tell("Pod/web", 80)
			if got := lines(s); len(got) == 0 || got[0] != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if m := main(s); len(m.Causes) == 0 || m.Causes[0].Name != "web" {
				t.Errorf("causes %+v", m.Causes)
			}
		})
	}
}

// TestCauses: objects are counted to one cause only if they say the same: exit codes are not names.
func TestCauses(t *testing.T) {
	l := newLog(t)
	for i, code := range []int{1, 1, 2, 137} {
		name := fmt.Sprintf("web-a-x%d", i)
		l.initial(pod(name, "web-a", "", "", running))
		l.put(10+float64(i), pod(name, "web-a", "", "", fmt.Sprintf(`phase: Running, containerStatuses: [{name: web, restartCount: 1, state: {terminated: {exitCode: %d, reason: Error}}}]`, code)))
		l.event(10+float64(i), name+".1", "Warning", "BackOff", "Back-off restarting failed container web in pod "+name, "Pod", name)
	}
	s := l.tell("Pod/web-a-x0", 30)
	var got []string
	for _, c := range main(s).Causes {
		got = append(got, fmt.Sprintf("%s %d", c.Text, c.Objects))
	}
	if diff := cmp.Diff([]string{"Error: exit 1 2", "Error: exit 2 0", "Error: exit 137 0"}, got); diff != "" {
		t.Error(diff)
	}
	for _, e := range main(s).Entries {
		if e.Type == api.EventType && (e.Count != 4 || e.What[1] != "and 3 messages like it about 4 Pods") {
			t.Errorf("%+v", e)
		}
	}
}

// TestLivenessProbe: of a container that the kubelet ended, the Events say why.
func TestLivenessProbe(t *testing.T) {
	l := newLog(t, alone("web", "", ready))
	l.event(5, "web.1", "Warning", "Unhealthy", "Liveness probe failed: connection refused", "Pod", "web")
	l.event(6, "web.2", "Normal", "Killing", "Container web failed liveness probe, will be restarted", "Pod", "web")
	l.put(10, alone("web", "", `phase: Running, containerStatuses: [{name: web, restartCount: 1, state: {terminated: {exitCode: 143, reason: Error, finishedAt: "2026-01-02T14:00:10Z"}}}]`))
	s := l.want("Pod/web", 30, "10- failed: Pod web: failed liveness probe (connection refused), 1 restart; still so at the end of the story")
	if c := main(s).Causes; len(c) != 3 || c[1].Field != "Event" {
		t.Errorf("%+v", c)
	}
	// A probe that fails later is not why it crashed.
	l = newLog(t, alone("web", "", ready))
	l.put(10, alone("web", "", crashed))
	l.event(40, "web.2", "Normal", "Killing", "Container web failed liveness probe, will be restarted", "Pod", "web")
	l.put(41, alone("web", "", backOff))
	l.want("Pod/web", 60, "10- failed: Pod web: CrashLoopBackOff (exit 1: no database), 1 restart; still so at the end of the story")
}

// TestConfig: changes of what a failed Pod uses are named with it, without values.
func TestConfig(t *testing.T) {
	l := newLog(t)
	config := func(kind, data, manager, second string) string {
		return fmt.Sprintf(`{kind: %s, metadata: {name: %s, managedFields: [{manager: %s, operation: Update, time: "%s", fieldsV1: {"f:data": {"f:url": {}}}}]}, data: {%s}}`,
			kind, map[string]string{"ConfigMap": "settings", "Secret": "keys"}[kind], manager, second, data)
	}
	l.initial(alone("web", usesConfig, ready), config("ConfigMap", "url: very-old-value", "a", "1"), config("Secret", "url: c2VjcmV0LW9sZA==", "a", "1"))
	l.put(10, config("ConfigMap", "url: very-new-value", "kubectl-edit", "2")).put(20, config("Secret", "url: c2VjcmV0LW5ldw==", "vault", "2"))
	l.put(40, alone("web", usesConfig, backOff)).put(70, config("ConfigMap", "url: very-old-value", "kubectl-edit", "3"))
	s := l.want("Pod/web", 90,
		"10-10 info: ConfigMap settings: key url changed by kubectl-edit",
		"20-20 info: Secret keys: key url changed by vault",
		"40- failed: 20s after Secret keys, which the failed Pods use, was changed (key url changed, by vault) and 30s after ConfigMap settings, which the failed Pods use, was changed (key url changed, by kubectl-edit): "+
			"Pod web: CrashLoopBackOff (exit 1: no database), 1 restart; 30s later ConfigMap settings was changed (key url changed, by kubectl-edit); still so at the end of the story")
	if text := fmt.Sprint(s); strings.Contains(text, "c2Vjc") || strings.Contains(text, "very-") {
		t.Errorf("values in %s", text)
	}
}

func node(ready, reason, message, more string) string {
	return fmt.Sprintf(`{kind: Node, metadata: {name: n1, managedFields: [{manager: kubectl-cordon, operation: Update, time: "1", fieldsV1: {"f:spec": {"f:unschedulable": {}}}}]}, spec: {%s}, status: {conditions: [{type: Ready, status: %q, reason: %q, message: %q}]}}`, more, ready, reason, message)
}

// TestNodeLost: a Node that is lost, and its Pods, are one episode.
func TestNodeLost(t *testing.T) {
	l := newLog(t, node("True", "KubeletReady", "", ""), pod("web-a-1", "web-a", "", "", running))
	l.put(10, node("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", ""))
	l.put(11, pod("web-a-1", "web-a", "", "", strings.Replace(running, `"True"`, `"False"`, 1)))
	l.event(11, "web-a-1.1", "Warning", "NodeNotReady", "Node is not ready", "Pod", "web-a-1")
	l.put(40, pod("web-a-1", "web-a", "", "", fmt.Sprintf(disruption, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")))
	l.put(41, pod("web-a-1", "web-a", `, deletionTimestamp: "2026-01-02T14:01:11Z"`, "", running))
	const lost = "failed: Node n1 NotReady (NodeStatusUnknown: Kubelet stopped posting node status); on it Pod web-a-1 evicted because of a NoExecute taint"
	l.want("Node/n1", 60, "10- "+lost+", still terminating; still so at the end of the story")
	l.want("Node/n1", 180, "10- "+lost+", still terminating; still so at the end of the story", "41- failed: Pod web-a-1 terminates, 1m49s longer than its grace period; still so at the end of the story")
	l.put(70, node("True", "KubeletReady", "", ""))
	l.first("Node/n1", 72, "…taint, still terminating at the end of the story; over after 1m")
	l.remove(140, "Pod/web-a-1")
	l.want("Pod/web-a-1", 180, "10-70 "+lost+"; over after 1m", "140-140 info: Pod web-a-1 deleted")
}

// TestNodeAfterOutage: that a Node was not observed shortly before it is NotReady is told with it.
func TestNodeAfterOutage(t *testing.T) {
	span := func(reason string, noAnswer bool, to float64) api.UnobservedSpan {
		return api.UnobservedSpan{Resource: "nodes", Reason: reason, NoAnswer: noAnswer, TimeSpan: api.TimeSpan{From: at(1), To: at(to)}}
	}
	const lost = "Node n1 NotReady (NodeStatusUnknown: Kubelet stopped posting node status); still so at the end of the story"
	for want, spans := range map[string][]api.UnobservedSpan{
		"right after the API server did not answer for 59s: " + lost: {span(api.InGap, true, 60)},
		"45s after the API server did not answer for 15s: " + lost:   {span(api.Late, true, 16)},
		"11s after nothing was observed for 49s: " + lost:            {span(api.InGap, false, 50), span(api.NoAnswer, true, 60)},
		lost: {span(api.InGap, true, 9), span(api.InGap, true, 70)},
	} {
		l := newLog(t, node("True", "KubeletReady", "", ""))
		l.put(61, node("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", ""))
		in := l.input("Node/n1", 120)
		in.Unobserved = spans
		if got := lines(story.Tell(in)); len(got) != 1 || got[0] != "61- failed: "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMarkedLater: what is said of a Pod after its deletion was requested is not why.
func TestMarkedLater(t *testing.T) {
	l := newLog(t, node("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", ""), alone("web", "", ready))
	const deleted = `name: web, deletionTimestamp: "2026-01-02T14:00:40Z", deletionGracePeriodSeconds: 30`
	l.put(10, strings.Replace(alone("web", "", ready), "name: web", deleted, 1))
	marked := fmt.Sprintf(disruption, `DeletionByTaintManager, lastTransitionTime: "2026-01-02T14:05:00Z"`, "Taint manager: deleting due to NoExecute taint")
	l.event(300, "web.1", "Normal", "TaintManagerEviction", "Marking for deletion Pod shop/web", "Pod", "web")
	l.put(300, strings.Replace(alone("web", "", marked), "name: web", deleted, 1))
	l.want("Pod/web", 600, "..0- failed: Node n1 NotReady (NodeStatusUnknown: Kubelet stopped posting node status); on it Pod web; still so at the end of the story",
		"10- failed: Pod web terminates, 9m20s longer than its grace period; still so at the end of the story")
}

// TestStays: a Node is not drained while a Pod is left that a drain would evict.
func TestStays(t *testing.T) {
	l := newLog(t, node("True", "", "", ""), pod("web-a-1", "web-a", "", "", running), pod("static", "web-a", `, annotations: {kubernetes.io/config.mirror: "1"}`, "", running), pod("done", "web-a", "", "", "phase: Succeeded"))
	l.initial(strings.Replace(pod("agent", "web-a", "", "", running), "kind: ReplicaSet", "kind: DaemonSet", 1))
	l.put(10, node("True", "", "", "unschedulable: true")).put(11, pod("late", "web-a", "", "", running))
	l.put(12, pod("web-a-1", "web-a", "", "", fmt.Sprintf(disruption, "EvictionByEvictionAPI", "Eviction API: evicting")))
	const evicted = ", Pod web-a-1 evicted by the eviction API"
	l.first("Node/n1", 20, "Node n1 cordoned by kubectl-cordon"+evicted+", still terminating; still so at the end of the story")
	l.gap = at(25)
	l.put(30, node("True", "", "", "")).remove(30.1, "Pod/web-a-1")
	l.first("Node/n1", 40, "Node n1 drained: cordoned by kubectl-cordon"+evicted+"; uncordoned by kubectl-cordon after 15s to 20s")
}

// TestTaint: a NoExecute taint is told with the Pods that it evicts, before the failures of others, but
// those of the node controller are told with the condition.
func TestTaint(t *testing.T) {
	tainted := func(key string) string {
		return strings.Replace(node("True", "", "", "taints: [{key: "+key+", effect: NoExecute}]"), "f:unschedulable", "f:taints", 1)
	}
	l := newLog(t, tainted(`node.kubernetes.io/unreachable`), pod("web-a-1", "web-a", "", "", running), pod("agent", "agent", "", "", running))
	l.put(10, tainted(`maint, value: "1"`))
	l.put(11, pod("web-a-1", "web-a", "", "", fmt.Sprintf(disruption, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")))
	l.remove(12, "Pod/web-a-1").put(13, pod("agent", "agent", "", "", backOff))
	const evicted = "Node n1 tainted maint=1:NoExecute by kubectl-cordon, Pod web-a-1 evicted; "
	if m := main(l.tell("Node/n1", 40)); m.Title != evicted+"still so at the end of the story" || len(m.Entries) != 3 {
		t.Errorf("%+v", m)
	}
	l.put(45, pod("agent", "agent", "", "", running)).put(50, node("True", "", "", ""))
	if m := main(l.tell("Node/n1", 180)); m.Title != evicted+"taint removed by kubectl-cordon after 40s" || m.Severity != api.EpisodeWarning {
		t.Errorf("%+v", m)
	}
}

// TestDrain: the numbers of a PodDisruptionBudget are shown until it allowed the last eviction,
// and of the budgets of evicted Pods only.
func TestDrain(t *testing.T) {
	l := newLog(t)
	budget := func(name string, healthy int, allowed, reason string) string {
		return fmt.Sprintf(`{kind: PodDisruptionBudget, metadata: {name: %s}, spec: {selector: {matchLabels: {app: %s}}}, status: {currentHealthy: %d, desiredHealthy: 2, conditions: [{type: DisruptionAllowed, status: %q, reason: %s}]}}`, name, name, healthy, allowed, reason)
	}
	l.initial(node("True", "", "", ""))
	for _, name := range []string{"web-a-1", "web-a-2"} {
		l.initial(pod(name, "web-a", ", labels: {app: web}", "", running))
	}
	l.initial(budget("web", 3, "True", "SufficientPods"), budget("other", 2, "False", "InsufficientPods"))
	l.put(10, node("True", "", "", "unschedulable: true")).put(12, budget("web", 2, "False", "InsufficientPods"))
	l.want("Node/n1", 15, "10- info: Node n1 cordoned by kubectl-cordon", "12-12 info: PodDisruptionBudget web: DisruptionAllowed → not DisruptionAllowed (InsufficientPods); status.currentHealthy 3 → 2")
	gone := fmt.Sprintf(disruption, "EvictionByEvictionAPI", "Eviction API: evicting")
	l.put(12.3, pod("web-a-1", "web-a", ", labels: {app: web}", "", gone)).remove(13, "Pod/web-a-1")
	const blocked = "warning: Node n1 cordoned by kubectl-cordon, Pod web-a-1 evicted by the eviction API, Pod web-a-2 still on it; PodDisruptionBudget web allowed no disruption for %s (healthy: 2, needed: 2); "
	s := l.want("Node/n1", 25, "10- "+fmt.Sprintf(blocked, "13s")+"still so at the end of the story")
	if c := main(s).Causes; len(c) != 2 || c[1].Kind != "PodDisruptionBudget" {
		t.Errorf("the causes are %+v", c)
	}
	l.put(30, budget("web", 3, "True", "SufficientPods")).put(31, pod("web-a-2", "web-a", ", labels: {app: web}", "", gone))
	l.put(31.2, budget("web", 2, "False", "InsufficientPods")).remove(35, "Pod/web-a-2").put(50, node("True", "", "", ""))
	s = l.want("Node/n1", 60, "10-50 warning: Node n1 drained: cordoned by kubectl-cordon, 2 Pods of ReplicaSet web-a evicted by the eviction API; "+
		"before the last of these evictions, PodDisruptionBudget web allowed none for 18s (healthy: 2, needed: 2); uncordoned by kubectl-cordon after 40s")
	if c := main(s).Causes; len(c) != 2 || c[1].Kind != "PodDisruptionBudget" || c[1].Text != "InsufficientPods, currentHealthy: 2, desiredHealthy: 2" {
		t.Errorf("%+v", c)
	}
}

// TestPreemption: the Event has the UID of the Pod that is preferred, the story its name, its
// priority, and what was done to its workload.
func TestPreemption(t *testing.T) {
	l := newLog(t)
	search := func(rv, status string) string {
		return strings.NewReplacer("web", "search", "uid-Deployment-web", "uid-Deployment-search").Replace(pod("search-1", "search-a", "", ", priority: 100"+rv, status))
	}
	l.initial(pod("web-a-1", "web-a", "", ", priority: 5", running))
	l.put(8, strings.ReplaceAll(deployment(1, 1, "r/web:1.0", "kubectl-create", "", ""), "web", "search"))
	l.put(8.5, strings.ReplaceAll(replicaSet("a", "r/web:1.0", ""), "web", "search")).put(9, search("", noNode))
	l.put(10, pod("web-a-1", "web-a", "", ", priority: 5", fmt.Sprintf(disruption, "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")))
	l.event(10.5, "web-a-1.1", "Normal", "Preempted", "Preempted by pod uid-Pod-search-1 on node n1", "Pod", "web-a-1")
	l.remove(12, "Pod/web-a-1").put(13, search("", running))
	s := l.tell("Pod/web-a-1", 60)
	const want = "2s after Deployment search was created (by kubectl-create): ReplicaSet web-a: 1 Pod (priority 5) preempted by the scheduler for Pod search-1 (priority 100)"
	if m := main(s); m.Kind != api.EpisodeDisruption || m.Title != want {
		t.Errorf("the main episode is %q", m.Title)
	}
}

// TestQuota: Pods that a quota refuses.
func TestQuota(t *testing.T) {
	l := newLog(t)
	quota := func(pods, used int) string {
		return fmt.Sprintf(`{kind: ResourceQuota, metadata: {name: small}, spec: {hard: {pods: "%d"}}, status: {used: {pods: "%d"}}}`, pods, used)
	}
	const refused = `pods \"web-a-x%d\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2`
	l.initial(quota(2, 1), deployment(1, 1, "r/web:1.0", "kubectl-create", "1", done(1, 1)), replicaSet("a", "r/web:1.0", "replicas: 1"))
	for i := range 2 { // another one in the namespace
		l.put(float64(2*i), strings.ReplaceAll(deployment(i, i, "r/web:1.0", "m", "1", done(i, i)), "web", "other"))
	}
	l.put(10, deployment(2, 3, "r/web:1.0", "kubectl-scale", "1", done(1, 1))).put(11, quota(2, 2))
	for i := range 3 {
		l.event(11+float64(i), fmt.Sprintf("web-a.%d", i), "Warning", "FailedCreate", fmt.Sprintf(strings.ReplaceAll(refused, `\`, ""), i), "ReplicaSet", "web-a")
	}
	l.put(12, replicaSet("a", "r/web:1.0", fmt.Sprintf(`replicas: 2, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "%s"}]`, fmt.Sprintf(refused, 0))))
	s := l.tell("Deployment/web", 60)
	const grew = "2s after Deployment web was changed (replicas 1 → 3, by kubectl-scale): "
	const why = "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"
	if m := main(s); m.Kind != api.EpisodeCreation || m.Title != grew+"Deployment web: Pods could not be created: "+why+"; still so at the end of the story, with 1 of 3 ready" || len(m.Causes) != 2 || m.Causes[1].Field != "Event" {
		t.Errorf("%+v", m)
	}
	if all := fmt.Sprint(lines(s)); strings.Contains(all, "other") {
		t.Error(all)
	}
	for _, e := range main(s).Entries {
		if e.Type == api.EventType && (e.Count != 3 || len(e.What) != 2) {
			t.Errorf("Events are not folded: %+v", e)
		}
	}
	l.put(40, quota(9, 2)).put(41, replicaSet("a", "r/web:1.0", "replicas: 3"))
	s = l.tell("Deployment/web", 60)
	if m := main(s); m.Title != grew+"Deployment web: Pods could not be created: "+why+"; 28s later ResourceQuota small was changed (hard.pods 2 → 9); over after 29s; 1 of 3 ready at its end" {
		t.Errorf("%+v", m)
	}
}

func TestFinalizers(t *testing.T) {
	l := newLog(t, `{kind: Namespace, metadata: {name: old}, status: {phase: Active}}`)
	l.put(10, `{kind: Namespace, metadata: {name: old, deletionTimestamp: "2026-01-02T14:00:10Z", finalizers: [example.com/hold]}, status: {phase: Terminating}}`)
	l.put(15, `{kind: Namespace, metadata: {name: old, deletionTimestamp: "2026-01-02T14:00:10Z", finalizers: [example.com/hold]}, status: {phase: Terminating, conditions: [{type: NamespaceFinalizersRemaining, status: "True", reason: SomeFinalizersRemain, message: "in 1 resource instances"}]}}`)
	const because = "SomeFinalizersRemain: in 1 resource instances"
	l.want("Namespace/old", 60, "10- failed: deletion of Namespace old is blocked by its finalizers (example.com/hold); "+because+"; still so at the end of the story")
	l.put(90, `{kind: Namespace, metadata: {name: old, deletionTimestamp: "2026-01-02T14:00:10Z", managedFields: [{manager: kubectl-patch, operation: Update, time: "1"}]}, status: {phase: Terminating}}`)
	l.remove(91, "Namespace/old")
	l.want("Namespace/old", 120, "10-91 failed: deletion of Namespace old was blocked by its finalizers (example.com/hold) for 1m21s; "+because+"; finalizer example.com/hold removed by kubectl-patch")
}

// TestNamespace: what a Namespace waits for is named if its condition names the finalizer.
func TestNamespace(t *testing.T) {
	l := newLog(t, `{kind: Namespace, metadata: {name: shop}}`, `{kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}`, `{kind: ConfigMap, metadata: {name: free, finalizers: [example.com/other]}}`)
	l.put(10, `{kind: Namespace, metadata: {name: shop, deletionTimestamp: "2026-01-02T14:00:10Z"}}`)
	l.put(11, `{kind: ConfigMap, metadata: {name: held, deletionTimestamp: "2026-01-02T14:00:11Z", finalizers: [example.com/hold]}}`)
	l.put(11, `{kind: ConfigMap, metadata: {name: free, deletionTimestamp: "2026-01-02T14:00:11Z", finalizers: [example.com/other]}}`)
	l.put(15, `{kind: Namespace, metadata: {name: shop, deletionTimestamp: "2026-01-02T14:00:10Z"}, status: {conditions: [{type: NamespaceFinalizersRemaining, status: "True", reason: SomeFinalizersRemain, message: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"}]}}`)
	l.first("Namespace/shop", 60, "deletion of Namespace shop waits for ConfigMap held (finalizer example.com/hold); still so at the end of the story")
	l.remove(80, "ConfigMap/held", "ConfigMap/free").remove(82, "Namespace/shop")
	l.first("Namespace/shop", 90, "deletion of Namespace shop was held up for 1m12s by ConfigMap held (finalizer example.com/hold, gone after 1m9s)")
}

func TestJobs(t *testing.T) {
	l := newLog(t)
	l.put(1, `{kind: Job, metadata: {name: load}}`)
	l.put(9, `{kind: Pod, metadata: {name: load-1, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: load, uid: uid-Job-load, controller: true}]}, spec: {nodeName: n1}, status: {phase: Failed}}`)
	l.put(30, `{kind: Job, metadata: {name: load}, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: "Job has reached the specified backoff limit"}]}}`)
	l.want("Job/load", 60, "1-30 failed: Job load failed: BackoffLimitExceeded: Job has reached the specified backoff limit after 29s")
	l.put(40, `{kind: CronJob, metadata: {name: load}, spec: {suspend: false}}`)
	l.put(50, `{kind: CronJob, metadata: {name: load, managedFields: [{manager: hugo, operation: Update, fieldsV1: {"f:spec": {"f:suspend": {}}}}]}, spec: {suspend: true}}`)
	l.want("CronJob/load", 60, "1-30 failed: Job load failed: BackoffLimitExceeded: Job has reached the specified backoff limit after 29s", "40-40 info: CronJob load: created", "50- info: CronJob load suspended by hugo")
}

// TestNextFault: another fault of a Pod is no recovery.
func TestNextFault(t *testing.T) {
	l := newLog(t)
	l.put(5, alone("web", "", badImage)).put(20, alone("web", "", backOff))
	l.want("Pod/web", 60, "5-20 failed: Pod web: ErrImagePull (manifest unknown), then CrashLoopBackOff",
		"20- failed: Pod web: CrashLoopBackOff (exit 1: no database), 1 restart; still so at the end of the story")
}

// TestFailedEvent: the kubelet's Event about a container and the container's status, which comes
// after it, are one failure.
func TestFailedEvent(t *testing.T) {
	l := newLog(t)
	l.put(5, alone("web", "", `phase: Pending, conditions: [{type: Ready, status: "False"}]`))
	l.event(6, "web.1", "Warning", "Failed", "Error: ErrImagePull", "Pod", "web")
	l.put(7, alone("web", "", badImage)).remove(30, "Pod/web")
	l.want("Pod/web", 60, "5-30 failed: Pod web: ErrImagePull (manifest unknown), until deleted")
}

// TestFailsSince: Pods that fail since long after others are told with their own time.
func TestFailsSince(t *testing.T) {
	l := newLog(t, replicaSet("a", "r/web:1.0", "replicas: 3"))
	for i, name := range []string{"web-a-1", "web-a-2", "web-a-3"} {
		l.initial(pod(name, "web-a", "", "", running))
		l.put([]float64{10, 1300, 1310}[i], pod(name, "web-a", "", "", backOff))
	}
	l.want("ReplicaSet/web-a", 1400, "10- failed: Deployment web: 1 Pod CrashLoopBackOff (exit 1: no database), 1 restart; still so at the end of the story",
		"1300- failed: Deployment web: 2 Pods CrashLoopBackOff (exit 1: no database), 2 restarts; still so at the end of the story")
}

// TestOwnTime: the stories of a Pod and a ReplicaSet are about the time in which they existed, and
// about what owned them then.
func TestOwnTime(t *testing.T) {
	l := failedRollout(t)
	l.initial(node("True", "KubeletReady", "", ""))
	l.put(30, deployment(3, 2, "r/web:1.2", "helm", "2", "observedGeneration: 2")).remove(31, "Pod/web-b-1", "Pod/web-b-2")
	unwanted := strings.Replace(replicaSet("c", "r/web:1.2", ""), "spec: {template", "spec: {replicas: 0, template", 1)
	l.put(32, unwanted).put(33, pod("web-c-1", "web-c", "", "", running)).put(34, deployment(3, 2, "r/web:1.2", "helm", "3", done(3, 2)))
	l.remove(40, "Pod/web-c-1").put(80, node("True", "KubeletReady", "", "unschedulable: true")).put(90, node("True", "KubeletReady", "", ""))
	const rollout = "30-34 info: rollout of web from 1.1 to 1.2 (revision 3, by helm), complete after 4s"
	for id, want := range map[string][]string{"Pod/web-c-1": {rollout, "40-40 info: Pod web-c-1 deleted"}, "ReplicaSet/web-c": {rollout}} {
		l.want(id, 120, want...)
	}
	// Its Deployment is deleted, and it is kept.
	l.put(100, strings.Replace(strings.Replace(unwanted, "ownerReferences", "former", 1), "replicas: 0", "replicas: 0, minReadySeconds: 1", 1))
	l.remove(100, "Deployment/web")
	left := []string{rollout, "32-100 info: Pod web-c-1 deleted; other: 2 changes of ReplicaSet web-c, 2 changes of Pod web-c-1", "100-100 info: Deployment web deleted"}
	l.want("ReplicaSet/web-c", 109, left...)
	// Another Deployment of the name does not concern it, nor do its Pods the other one.
	again := strings.NewReplacer("uid-Deployment-web", "uid-2", "name: web,", "name: web, uid: uid-2,")
	l.put(110, again.Replace(deployment(1, 1, "r/web:2", "m", "1", "observedGeneration: 1, replicas: 1, updatedReplicas: 1")))
	l.want("ReplicaSet/web-c", 160, left...)
	l.put(120, again.Replace(replicaSet("d", "r/web:2", ""))).put(125, pod("web-d-1", "web-d", "", "", backOff))
	l.want("Pod/web-d-1", 160, "110- failed: Deployment web created with r/web:2 (revision 1, by m) failed: 1 Pod CrashLoopBackOff (exit 1: no database); still so at the end of the story, with 0 of 1 ready")
}

// TestSameName: a Pod of a StatefulSet that is on another Node now is another one.
func TestSameName(t *testing.T) {
	l := newLog(t)
	db := func(uid, on, status string) string {
		return fmt.Sprintf(`{kind: Pod, metadata: {name: db-0, uid: %s}, spec: {nodeName: %s, containers: [{name: web, image: x}]}, status: {%s}}`, uid, on, status)
	}
	l.initial(node("True", "", "", ""), db("first", "n2", running))
	l.put(10, db("first", "n2", fmt.Sprintf(disruption, "EvictionByEvictionAPI", "Eviction API: evicting"))).remove(12, "Pod/db-0")
	l.put(13, db("second", "n1", running)).put(20, node("True", "", "", "unschedulable: true"))
	l.put(30, db("second", "n1", fmt.Sprintf(disruption, "EvictionByEvictionAPI", "Eviction API: evicting"))).remove(31, "Pod/db-0")
	l.want("Node/n1", 60, "13-13 info: Pod db-0: created", "20- warning: Node n1 drained: cordoned by kubectl-cordon, Pod db-0 evicted by the eviction API; still so at the end of the story")
}

// TestDrainThenRollout: how many Pods are ready after a rollout has begun says nothing about a
// drain that is not over.
func TestDrainThenRollout(t *testing.T) {
	l := newLog(t, node("True", "", "", ""), deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)), replicaSet("a", "r/web:1.0", "replicas: 2"), pod("web-a-1", "web-a", "", "", running))
	l.put(10, node("True", "", "", "unschedulable: true"))
	l.put(11, pod("web-a-1", "web-a", "", "", fmt.Sprintf(disruption, "EvictionByEvictionAPI", "Eviction API: evicting"))).remove(12, "Pod/web-a-1")
	l.put(12, deployment(1, 2, "r/web:1.0", "m", "1", done(1, 1)))
	l.put(14, deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)))
	l.put(20, deployment(2, 2, "r/web:1.1", "m", "1", done(1, 2)))
	l.put(22, deployment(2, 2, "r/web:1.1", "m", "2", strings.Replace(done(2, 2), "readyReplicas: 2", "readyReplicas: 0", 1)))
	l.put(23, deployment(2, 2, "r/web:1.1", "m", "2", done(2, 2)))
	if got := lines(l.tell("Deployment/web", 24)); !strings.HasSuffix(got[0], "still so at the end of the story, with 2 of 2 ready (1 at the lowest)") {
		t.Errorf("%q", got)
	}
	l.put(24, pod("web-a-2", "web-a", "", "", backOff))
	if got := main(l.tell("Deployment/web", 24)); got.Kind != api.EpisodeFailure {
		t.Errorf("%q", got.Title) // the drain is over for the Deployment
	}
	l.remove(24.1, "Pod/web-a-2")
	l.put(25, node("True", "", "", ""))
	const drained = "10-25 warning: Node n1 cordoned by kubectl-cordon, Pod web-a-1 evicted by the eviction API; uncordoned by kubectl-cordon after 15s; 2 of 2 ready when Deployment web was changed (1 at the lowest)"
	if got := lines(l.tell("Deployment/web", 30)); got[0] != drained {
		t.Errorf("%q", got)
	}
}

// TestOwnEvidence: a change that is named with a failure does not make it begin earlier.
func TestOwnEvidence(t *testing.T) {
	l := newLog(t, alone("web", usesConfig, ready))
	l.put(10, `{kind: ConfigMap, metadata: {name: settings}, data: {a: b}}`)
	l.put(13, alone("web", usesConfig, backOff))
	l.want("Pod/web", 60, "13- failed: 3s after ConfigMap settings, which the failed Pods use, was created: Pod web: CrashLoopBackOff (exit 1: no database), 1 restart; still so at the end of the story")

	// Without an image, it has not read its configuration.
	const pulls = `{kind: Pod, metadata: {name: web}, spec: {nodeName: n1, imagePullSecrets: [{name: registry}], containers: [{name: web, image: x, envFrom: [{configMapRef: {name: settings}}]}]}, status: {%s}}`
	l = newLog(t, fmt.Sprintf(pulls, ready))
	l.put(10, `{kind: ConfigMap, metadata: {name: settings}, data: {a: b}}`)
	l.put(11, `{kind: Secret, metadata: {name: registry}, data: {a: b}}`)
	l.put(13, fmt.Sprintf(pulls, badImage))
	l.want("Pod/web", 60, "10-10 info: ConfigMap settings: created", "13- failed: 2s after Secret registry, which the failed Pods use, was created: Pod web: ErrImagePull (manifest unknown); still so at the end of the story")
}

// TestPodsDeleted: that Pods were deleted is told if their controller did not want fewer, or newer
// ones, and was not deleted itself.
func TestPodsDeleted(t *testing.T) {
	const terminating = `, deletionTimestamp: "2026-01-02T14:00:50Z"`
	set := func(n int) string {
		return strings.Replace(replicaSet("a", "r/web:1.0", fmt.Sprintf("replicas: %d", n)), "spec: {", fmt.Sprintf("spec: {replicas: %d, ", n), 1)
	}
	daemon := func(l *log, generation, desired int) {
		l.put(19, fmt.Sprintf(`{kind: DaemonSet, metadata: {name: agent, annotations: {deprecated.daemonset.template.generation: "%d"}}, spec: {template: {spec: {containers: [{name: web, image: x}]}}}, status: {desiredNumberScheduled: %d, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberReady: 2, numberAvailable: 2}}`, generation, desired))
		for _, name := range []string{"agent-1", "agent-2"} {
			l.put(19, strings.NewReplacer("ReplicaSet", "DaemonSet", "name: agent,", "name: agent, ").Replace(pod(name, "agent", `, labels: {pod-template-generation: "1"}`, "", running)))
		}
		l.remove(20, "Pod/agent-1")
	}
	for name, test := range map[string]struct {
		of     string
		events func(*log)
		want   string
	}{
		"all": {"Deployment/web", func(l *log) {
			for i := range 3 {
				l.put(20, pod(fmt.Sprint("web-a-", i), "web-a", terminating, "", running))
				l.put(20.1, pod(fmt.Sprint("web-a-n", i), "web-a", "", "", "phase: Pending"))
				l.put(22, pod(fmt.Sprint("web-a-n", i), "web-a", "", "", running))
				l.remove(23, fmt.Sprint("Pod/web-a-", i))
			}
		}, "20-22 warning: Deployment web: 3 of 3 Pods deleted, replaced after 2s"},
		"one, without a grace period": {"Deployment/web", func(l *log) { l.remove(20, "Pod/web-a-1") },
			"20-20 warning: Deployment web: 1 of 3 Pods deleted, none replaced at the end of the story"},
		"still terminating": {"Deployment/web", func(l *log) { l.put(20, pod("web-a-1", "web-a", terminating, "", running)) },
			"20- warning: Deployment web: deletion of 1 of 3 Pods requested; 1 Pod still terminating at the end of the story"},
		"scaled down": {"Deployment/web", func(l *log) {
			l.put(20, pod("web-a-1", "web-a", terminating, "", running))
			l.put(20.1, set(2))
		}, ""},
		"an Event says so": {"Deployment/web", func(l *log) {
			l.put(20, pod("web-a-1", "web-a", terminating, "", running))
			l.event(20.1, "web-a.1", "Normal", "SuccessfulDelete", "Deleted pod: web-a-1", "ReplicaSet", "web-a")
		}, ""},
		"with its owner": {"Deployment/web", func(l *log) {
			l.remove(20, "Pod/web-a-1")
			l.remove(20.1, "ReplicaSet/web-a")
			l.remove(20, "Deployment/web")
		}, ""},
		"with a ReplicaSet that is wanted": {"Deployment/web", func(l *log) {
			l.remove(20, "ReplicaSet/web-a")
			l.put(20.1, replicaSet("b", "r/web:1.0", ""))
			l.put(20.3, pod("web-a-1", "web-a", terminating, "", running))
			l.put(20.4, deployment(1, 3, "r/web:1.0", "m", "1", done(1, 2)))
			l.remove(22, "Pod/web-a-1")
			l.put(33, pod("web-b-1", "web-b", "", "", running), deployment(1, 3, "r/web:1.0", "m", "1", done(1, 3)))
		}, "20-33 warning: Deployment web: 1 of 3 Pods deleted with ReplicaSet web-a, replaced after 13s; 3 of 3 ready at its end (2 at the lowest)"},
		"with one that is not": {"Deployment/web", func(l *log) {
			l.put(20, set(0))
			l.remove(20.1, "ReplicaSet/web-a")
			l.remove(20.2, "Pod/web-a-1")
		}, ""},
		"one of a name, twice": {"Deployment/web", func(l *log) {
			for i := range 2 {
				l.remove(float64(20+3*i), "Pod/web-a-1")
				l.put(float64(21+3*i), pod(fmt.Sprint("web-a-1, uid: n", i), "web-a", "", "", running))
			}
		}, "20-24 warning: Deployment web: 1 of 3 Pods deleted 2 times in all (web-a-1), replaced after 4s"},
		"with its Namespace": {"Deployment/web", func(l *log) {
			l.put(20, `{kind: Namespace, metadata: {name: shop, deletionTimestamp: "2026-01-02T14:00:20Z"}}`)
			l.remove(20, "Pod/web-a-1")
		}, ""},
		"in a gap": {"Deployment/web", func(l *log) {
			l.gap = at(15)
			l.remove(20, "Pod/web-a-1")
		}, ""},
		"after its end": {"Deployment/web", func(l *log) {
			l.put(15, pod("web-a-1", "web-a", "", "", "phase: Succeeded"))
			l.remove(20, "Pod/web-a-1")
		}, ""},
		"of a DaemonSet":            {"DaemonSet/agent", func(l *log) { daemon(l, 1, 2) }, "20-20 warning: DaemonSet agent: 1 of 2 Pods deleted, none replaced at the end of the story"},
		"of an older template":      {"DaemonSet/agent", func(l *log) { daemon(l, 2, 2) }, ""},
		"from a Node that is other": {"DaemonSet/agent", func(l *log) { daemon(l, 1, 1) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, `{kind: Namespace, metadata: {name: shop}}`, deployment(1, 3, "r/web:1.0", "kubectl-create", "1", done(1, 3)), set(3))
			for i := range 3 {
				l.initial(pod(fmt.Sprint("web-a-", i), "web-a", "", "", running))
			}
			test.events(l)
			got := slices.DeleteFunc(lines(l.tell(test.of, 60)), func(line string) bool {
				return !strings.Contains(line, "Pods deleted") && !strings.Contains(line, "deletion of")
			})
			if text := strings.Join(got, "\n"); text != test.want {
				t.Errorf("%q, want %q", text, test.want)
			}
		})
	}
}

// TestSameReplicaSet: the Pods of a later rollout to the same template are none of an earlier one.
func TestSameReplicaSet(t *testing.T) {
	l := failedRollout(t)
	l.put(30, deployment(3, 2, "r/web:1.0", "kubectl-set", "3", done(3, 2)))
	l.remove(31, "Pod/web-b-1")
	l.remove(32, "Pod/web-b-2")
	l.put(60, deployment(4, 2, "r/web:1.1", "kubectl-set", "4", "observedGeneration: 4, replicas: 3, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2"))
	l.put(61, pod("web-b-3", "web-b", "", "", "phase: Pending"))
	l.put(65, pod("web-b-3", "web-b", "", "", crashed))
	got := lines(l.tell("Deployment/web", 80))
	want := []string{
		"10-30 failed: rollout of web from 1.0 to 1.1 (revision 2, by kubectl-set) failed: 2 Pods CrashLoopBackOff (exit 1: no database); rolled back to 1.0 by kubectl-set, complete after less than 1s; 2 of 2 ready all the time",
		"60- failed: rollout of web from 1.0 again to 1.1 (revision 4, by kubectl-set) failed: 1 Pod Error (exit 1: no database); still so at the end of the story, with 2 of 2 ready",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestChangeBeforeFailure: what was changed between a rollout and the failure of its Pods is told from the failure.
func TestChangeBeforeFailure(t *testing.T) {
	l := newLog(t, `{kind: ConfigMap, metadata: {name: settings}, data: {url: a}}`)
	l.put(1, deployment(1, 1, "r/web:1.0", "kubectl-create", "1", ""))
	l.put(1.1, replicaSet("a", "r/web:1.0", ""))
	const uses = `, volumes: [{name: c, configMap: {name: settings}}]`
	l.put(2, pod("web-a-1", "web-a", "", uses, running))
	l.put(3, deployment(1, 1, "r/web:1.0", "kubectl-create", "1", done(1, 1)))
	l.put(6, `{kind: ConfigMap, metadata: {name: settings}, data: {url: b}}`)
	l.put(9, pod("web-a-1", "web-a", "", uses, crashed))
	l.want("Deployment/web", 40, "1- failed: Deployment web created with r/web:1.0 (revision 1, by kubectl-create), complete after 2s, then failed 6s later, 3s after ConfigMap settings, which the failed Pods use, was changed (key url changed): 1 Pod Error (exit 1: no database); still so at the end of the story")
}

// TestRefusedPods: a controller without the condition ReplicaFailure is refused Pods for as long as it
// lacks some; the last Event is not the end.
func TestRefusedPods(t *testing.T) {
	agent := func(current int) string {
		return fmt.Sprintf(`{kind: DaemonSet, metadata: {name: agent}, spec: {template: {spec: {containers: [{name: web, image: x}]}}}, status: {desiredNumberScheduled: 3, currentNumberScheduled: %d, updatedNumberScheduled: %[1]d, numberReady: %[1]d, numberAvailable: %[1]d}}`, current)
	}
	l := newLog(t, agent(3))
	l.put(20.1, agent(2))
	l.event(20, "agent.1", "Warning", "FailedCreate", "exceeded quota: q, requested: pods=1, used: pods=7, limited: pods=2", "DaemonSet", "agent")
	const refused = "failed: DaemonSet agent: Pods could not be created: exceeded quota: q, requested: pods=1, used: pods=7, limited: pods=2; "
	l.want("DaemonSet/agent", 60, "20- "+refused+"still so at the end of the story, with 2 of 3 ready")
	l.put(70, agent(3))
	l.want("DaemonSet/agent", 90, "20-70 "+refused+"over after 50s; 3 of 3 ready at its end (2 at the lowest)")
}
