// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// object reads an object in YAML; it is given a name and an RV.
func object(t *testing.T, text string, rv int) *scan.Object {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	meta, _ := tree["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		tree["metadata"] = meta
	}
	meta["name"], meta["resourceVersion"] = "a", fmt.Sprint(rv)
	b, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	o, err := scan.ParseObject(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSummary changes an object in each of the ways that have words of their own.
func TestSummary(t *testing.T) {
	for _, tc := range []struct{ name, before, after, want string }{
		{"image that is a mistake", `{kind: Deployment, spec: {template: {spec: {containers: [{name: app, image: "nginx:1.25"}]}}}}`,
			`{kind: Deployment, spec: {template: {spec: {containers: [{name: app, image: "nginx: 1.27"}]}}}}`, "image nginx:1.25 → nginx: 1.27"},
		{"image", `{kind: Deployment, spec: {template: {spec: {containers: [{name: app, image: "nginx:1.25"}]}}}}`,
			`{kind: Deployment, spec: {template: {spec: {containers: [{name: app, image: "nginx:1.27"}]}}}}`, "image nginx:1.25 → 1.27"},
		{"another image", `{kind: Pod, spec: {containers: [{name: app, image: "nginx:1"}]}}`,
			`{kind: Pod, spec: {containers: [{name: app, image: "example.com:5000/nginx:1"}]}}`, "image nginx:1 → example.com:5000/nginx:1"},
		{"digest", `{kind: Pod, spec: {containers: [{name: app, image: "h:1/nginx@sha256:aa"}]}}`,
			`{kind: Pod, spec: {containers: [{name: app, image: "h:1/nginx@sha256:bb"}]}}`, "image h:1/nginx@sha256:aa → sha256:bb"},
		{"one more container in front", `{kind: Deployment, spec: {template: {spec: {containers: [{name: app, image: a, env: [{name: X, value: "1"}]}]}}}}`,
			`{kind: Deployment, spec: {template: {spec: {containers: [{name: log, image: "l:1"}, {name: app, image: b, env: [{name: W, value: "0"}, {name: X, value: "2"}]}]}}}}`,
			"container log added (l:1); container app: image a → b; container app: env[W] added; container app: env[X].value 1 → 2"},
		{"container gone", `{kind: Pod, spec: {containers: [{name: a}, {name: b}], initContainers: [{name: i, image: "i:1"}]}}`,
			`{kind: Pod, spec: {containers: [{name: b}], initContainers: [{name: i, image: "i:2"}]}}`, "container a removed; init container i: image i:1 → 2"},
		{"limits", `{kind: Deployment, spec: {template: {spec: {containers: [{name: app, resources: {limits: {memory: 1Gi}}}]}}}}`,
			`{kind: Deployment, spec: {template: {spec: {containers: [{name: app, resources: {limits: {memory: 2Gi, cpu: "1"}}}]}}}}`,
			"container app: resources.limits.cpu none → 1; container app: resources.limits.memory 1Gi → 2Gi"},
		{"scale", `{kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 3, observedGeneration: 1}}`,
			`{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 5}, status: {replicas: 5, readyReplicas: 3, unavailableReplicas: 2, observedGeneration: 2}}`,
			"replicas 3 → 5; current replicas 3 → 5; unavailable replicas 0 → 2"},
		{"scaled to nothing", `{kind: Deployment, status: {readyReplicas: 1}}`, `{kind: Deployment, status: {}}`, "ready replicas 1 → 0"},
		{"pause", `{kind: Deployment, spec: {}}`, `{kind: Deployment, spec: {paused: true}}`, "rollout paused"},
		{"restart", `{kind: Deployment, spec: {template: {metadata: {}}}}`,
			`{kind: Deployment, spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"}}}}}`, "restart asked for"},
		{"cron job", `{kind: CronJob, spec: {schedule: "* * * * *"}, status: {active: [{uid: a, name: x}]}}`,
			`{kind: CronJob, spec: {schedule: "*/5 * * * *"}, status: {}}`, "schedule * * * * * → */5 * * * *; status.active[x] removed"},
		{"not ready", `{kind: Pod, status: {conditions: [{type: Ready, status: "True", lastTransitionTime: a}]}}`,
			`{kind: Pod, status: {conditions: [{type: Initialized, status: "True"}, {type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: b}]}}`,
			"Initialized; Ready → NotReady (ContainersNotReady)"},
		{"unschedulable", `{kind: Pod, spec: {}}`,
			`{kind: Pod, spec: {x: 1}, status: {conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/5 nodes are available:\n 5 Insufficient cpu"}]}}`,
			"x none → 1; not PodScheduled (Unschedulable): 0/5 nodes are available: 5 Insufficient cpu"},
		{"one message", `{kind: Pod, status: {conditions: [{type: Ready, status: "True"}, {type: ContainersReady, status: "True"}]}}`,
			`{kind: Pod, status: {conditions: [{type: Ready, status: "False", reason: R, message: m}, {type: ContainersReady, status: "False", reason: R, message: m}]}}`,
			"Ready → NotReady (R): m; ContainersReady → not ContainersReady (R)"},
		{"good news", `{kind: Node, status: {conditions: [{type: MemoryPressure, status: Unknown}]}}`,
			`{kind: Node, status: {conditions: [{type: MemoryPressure, status: "False", reason: R, message: all is well}]}}`, "MemoryPressure unknown → not MemoryPressure (R)"},
		{"bad news that is true", `{kind: Namespace, status: {conditions: [{type: NamespaceFinalizersRemaining, status: "False", reason: A, message: all is well}]}}`,
			`{kind: Namespace, status: {conditions: [{type: NamespaceFinalizersRemaining, status: "True", reason: B, message: x in 1 instances}]}}`,
			"not NamespaceFinalizersRemaining → NamespaceFinalizersRemaining (B): x in 1 instances"},
		{"unknown", `{kind: Node, status: {conditions: [{type: Ready, status: "True"}]}}`,
			`{kind: Node, status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}}`,
			"Ready → Ready unknown (NodeStatusUnknown): Kubelet stopped posting node status."},
		{"autoscaler", `{kind: HorizontalPodAutoscaler, status: {currentReplicas: 2}}`, `{kind: HorizontalPodAutoscaler, status: {currentReplicas: 4}}`, "replicas of the target 2 → 4"},
		{"long message", `{kind: Pod, status: {}}`, `{kind: Pod, status: {message: "` + strings.Repeat("é", 90) + `"}}`, "status.message none → " + strings.Repeat("é", 80) + "…"},
		{"node lost", `{kind: Node, status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: a}]}}`,
			`{kind: Node, spec: {taints: [{key: node.kubernetes.io/unreachable, effect: NoSchedule}]}, status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, lastHeartbeatTime: b}]}}`,
			"taint node.kubernetes.io/unreachable:NoSchedule added; Ready → Ready unknown (NodeStatusUnknown)"},
		{"progress", `{kind: Deployment, status: {conditions: [{type: Progressing, status: "True", reason: A}, {type: Available, status: "True", message: old}]}}`,
			`{kind: Deployment, status: {conditions: [{type: Progressing, status: "True", reason: B}, {type: Available, status: "True", message: "all\n well"}]}}`,
			"Progressing: A → B; Available: all well"},
		{"only a time of a condition", `{kind: Pod, status: {conditions: [{type: Ready, status: "True", lastTransitionTime: a}]}}`,
			`{kind: Pod, status: {conditions: [{type: Ready, status: "True", lastTransitionTime: b}]}}`, "Ready: lastTransitionTime changed"},
		{"cordon", `{kind: Node, spec: {}}`, `{kind: Node, spec: {unschedulable: true}}`, "cordoned"},
		{"uncordon", `{kind: Node, spec: {unschedulable: true}}`, `{kind: Node, spec: {}}`, "uncordoned"},
		{"scheduled", `{kind: Pod, spec: {}, status: {phase: Pending}}`,
			`{kind: Pod, spec: {nodeName: node-1}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "False"}]}}`,
			"scheduled to node-1; PodScheduled; NotReady"},
		{"started", `{kind: Pod, status: {phase: Pending, containerStatuses: [{name: app, ready: false, restartCount: 0, state: {waiting: {reason: ContainerCreating}}}]}}`,
			`{kind: Pod, status: {phase: Running, podIP: 10.0.0.1, containerStatuses: [{name: app, ready: true, restartCount: 0, state: {running: {startedAt: x}}}]}}`,
			"Pending → Running; container app running"},
		{"oom", `{kind: Pod, status: {containerStatuses: [{name: app, restartCount: 1, state: {running: {startedAt: x}}}]}}`,
			`{kind: Pod, status: {containerStatuses: [{name: app, restartCount: 2, state: {running: {startedAt: y}}, lastState: {terminated: {reason: OOMKilled, exitCode: 137}}}]}}`,
			"container app restarted (OOMKilled, exit code 137)"},
		{"oom without a restart", `{kind: Pod, status: {containerStatuses: [{name: app, state: {running: {startedAt: x}}}]}}`,
			`{kind: Pod, status: {containerStatuses: [{name: app, state: {terminated: {reason: OOMKilled, exitCode: 137}}}]}}`,
			"container app terminated (OOMKilled, exit code 137)"},
		{"address", `{kind: Service, spec: {clusterIP: 10.0.0.33, clusterIPs: [10.0.0.33]}}`, `{kind: Service, spec: {clusterIP: 10.0.0.99, clusterIPs: [10.0.0.99]}}`, "clusterIP 10.0.0.33 → 10.0.0.99"},
		{"second address", `{kind: Service, spec: {clusterIP: 10.0.0.33, clusterIPs: [10.0.0.33]}}`, `{kind: Service, spec: {clusterIP: 10.0.0.33, clusterIPs: [10.0.0.33, "fd::1"]}}`, "clusterIPs[fd::1] none → fd::1"},
		{"crash", `{kind: Pod, status: {containerStatuses: [{name: app, restartCount: 1, state: {running: {startedAt: x}}}]}}`,
			`{kind: Pod, status: {containerStatuses: [{name: app, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {reason: Error, exitCode: 3}}}]}}`,
			"container app restarted (Error, exit code 3); container app waiting (CrashLoopBackOff)"},
		{"ended", `{kind: Pod, status: {initContainerStatuses: [{name: i, ready: false, state: {running: {}}}]}}`,
			`{kind: Pod, status: {initContainerStatuses: [{name: i, ready: true, state: {terminated: {reason: Completed, exitCode: 0}}}]}}`,
			"init container i terminated (Completed)"},
		{"container ready", `{kind: Pod, status: {containerStatuses: [{name: app, ready: true}]}}`,
			`{kind: Pod, status: {containerStatuses: [{name: app, ready: false}]}}`, "container app not ready"},
		{"labels", `{kind: Pod, metadata: {labels: {a: x, b: v}}}`, `{kind: Pod, metadata: {labels: {a: z, c: w}}}`, "label a x → z; label b removed; label c=w added"},
		{"first label", `{kind: Pod, metadata: {}}`, `{kind: Pod, metadata: {labels: {c: w}}}`, "label c=w added"},
		{"annotations", `{kind: Pod, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}}`,
			`{kind: Pod, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: y, deployment.kubernetes.io/revision: "2", a/b: c}}}`,
			"annotation a/b=c added; revision none → 2"},
		{"applied", `{kind: Pod, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}}`,
			`{kind: Pod, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: y}}}`, "applied configuration changed"},
		{"deletion", `{kind: Pod, metadata: {finalizers: [a/b]}}`,
			`{kind: Pod, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30}}`, "deletion requested (grace 30 s); finalizer a/b removed"},
		{"forced deletion", `{kind: Pod}`, `{kind: Pod, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 0}}`, "deletion requested (grace 0 s)"},
		{"deletion without grace", `{kind: Deployment}`, `{kind: Deployment, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 0}}`, "deletion requested"},
		{"adoption", `{kind: Pod, metadata: {}}`, `{kind: Pod, metadata: {ownerReferences: [{kind: ReplicaSet, name: web-1, uid: u}]}}`, "owner replicaset/web-1 added"},
		{"recreated", `{kind: Pod, metadata: {uid: a}}`, `{kind: Pod, metadata: {uid: b}, spec: {x: 1}}`, "deleted and created again; x none → 1"},
		{"secret", `{kind: Secret, data: {a: eA==}}`, `{kind: Secret, data: {a: eQ==, b: eg==}}`, "key a changed; key b added"},
		{"anything", `{kind: Widget, spec: {size: 1, deep: {list: [{name: a, x: 1}], other: [1, 2, 2]}}}`,
			`{kind: Widget, spec: {size: 2, deep: {list: [{name: a, x: 2}], other: [2, 1]}, more: {}}}`,
			"deep.list[a].x 1 → 2; deep.other changed; more added; size 1 → 2"},
		{"order", `{kind: Widget, spec: {l: [a, b]}}`, `{kind: Widget, spec: {l: [b, a]}}`, "l changed"},
		{"much", `{kind: Widget, spec: {}}`, `{kind: Widget, spec: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1}}`,
			"a none → 1; b none → 1; c none → 1; d none → 1; e none → 1; f none → 1; g none → 1; h none → 1; and 2 more"},
		{"long", `{kind: Widget, spec: {a: x}}`, `{kind: Widget, spec: {a: "` + strings.Repeat("é", 40) + `"}}`, "a x → " + strings.Repeat("é", 30) + "…"},
		// Changes that the phrases above leave out are described by path.
		{"labeled replicas", `{kind: ReplicaSet, status: {fullyLabeledReplicas: 1}}`, `{kind: ReplicaSet, status: {fullyLabeledReplicas: 2}}`, "status.fullyLabeledReplicas 1 → 2"},
		{"zero omitted", `{kind: Deployment, status: {readyReplicas: 0}}`, `{kind: Deployment}`, "status.readyReplicas 0 → none"},
		{"shorter grace period", `{kind: Pod, metadata: {deletionTimestamp: "2026-01-01T00:00:30Z", deletionGracePeriodSeconds: 30}}`,
			`{kind: Pod, metadata: {deletionTimestamp: "2026-01-01T00:00:10Z", deletionGracePeriodSeconds: 0}}`, "deletion grace period 30 s → 0 s"},
		{"another time of deletion", `{kind: Pod, metadata: {deletionTimestamp: "2026-01-01T00:00:30Z"}}`, `{kind: Pod, metadata: {deletionTimestamp: "2026-01-01T00:00:10Z"}}`,
			"metadata.deletionTimestamp 2026-01-01T00:00:30Z → 2026-01-01T00:00:10Z"},
		{"part of an owner", `{kind: Pod, metadata: {ownerReferences: [{kind: ReplicaSet, name: web-1, uid: u}]}}`,
			`{kind: Pod, metadata: {ownerReferences: [{kind: ReplicaSet, name: web-1, uid: u, controller: true}]}}`, "metadata.ownerReferences[web-1].controller none → true"},
		{"empty labels", `{kind: Pod, metadata: {labels: {}}}`, `{kind: Pod}`, "metadata.labels removed"},
		{"order of finalizers", `{kind: Pod, metadata: {finalizers: [a/b, c/d]}}`, `{kind: Pod, metadata: {finalizers: [c/d, a/b]}}`, "metadata.finalizers changed"},
		{"empty data", `{kind: ConfigMap, data: {}}`, `{kind: ConfigMap}`, "data removed"},
		{"paused omitted", `{kind: Deployment, spec: {paused: false}}`, `{kind: Deployment}`, "paused false → none"},
		{"restart forgotten", `{kind: Deployment, spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"}}}}}`, `{kind: Deployment}`,
			"template.metadata.annotations.kubectl.kubernetes.io/restartedAt 2026-01-01T00:00:00Z → none"},
		{"order of containers", `{kind: Pod, spec: {containers: [{name: a}, {name: b}]}}`, `{kind: Pod, spec: {containers: [{name: b}, {name: a}]}}`, "containers changed"},
		{"order of taints", `{kind: Node, spec: {taints: [{key: a}, {key: b}]}}`, `{kind: Node, spec: {taints: [{key: b}, {key: a}]}}`, "taints changed"},
		{"status of a container gone", `{kind: Pod, status: {containerStatuses: [{name: a}]}}`, `{kind: Pod}`, "status.containerStatuses[a] removed"},
		{"generated name", `{kind: Pod, metadata: {generateName: a-}}`, `{kind: Pod}`, "metadata.generateName a- → none"},
		{"version", `{kind: Widget, apiVersion: a/v1}`, `{kind: Widget, apiVersion: a/v2}`, "apiVersion a/v1 → a/v2"},
		{"null", `{kind: Deployment, spec: {template: {metadata: {creationTimestamp: null}}}}`, `{kind: Deployment, spec: {template: {metadata: {}}}}`, "null fields added or removed"},
		{"times", `{kind: Job, status: {startTime: a}}`, `{kind: Job, status: {startTime: b}}`, "status.startTime a → b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, after := object(t, tc.before, 1), object(t, tc.after, 2)
			c, err := new(change.Comparer).Between(before, after)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(c.Summary, "; "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if len(c.Patch) == 0 || c.OnlyNoise {
				t.Errorf("no patch: %+v", c)
			}
		})
	}
}

// An Event is described by what it says, not by how its fields differ.
func TestEvents(t *testing.T) {
	base := `kind: Event, type: Warning, reason: BackOff, message: "restarting failed"`
	for _, tc := range []struct{ name, before, after, want string }{
		{"again", `{` + base + `, count: 2, involvedObject: {resourceVersion: "1408"}}`, `{` + base + `, count: 3, involvedObject: {resourceVersion: "1639"}}`, "Warning BackOff: restarting failed (3 times)"},
		{"a series", `{` + base + `, eventTime: a}`, `{` + base + `, eventTime: b, series: {count: 2, lastObservedTime: b}}`, "Warning BackOff: restarting failed (2 times)"},
		{"events.k8s.io", `{kind: Event, type: Normal, reason: Pulled, note: an image, deprecatedCount: 1, regarding: {resourceVersion: "1"}}`,
			`{kind: Event, type: Normal, reason: Pulled, note: an image, deprecatedCount: 7, regarding: {resourceVersion: "2"}}`, "Normal Pulled: an image (7 times)"},
		{"another message", `{` + base + `, count: 2}`, `{kind: Event, type: Warning, reason: BackOff, message: still failing, count: 2}`, "Warning BackOff: still failing (2 times)"},
		{"a label", `{` + base + `}`, `{` + base + `, metadata: {labels: {a: b}}}`, "Warning BackOff: restarting failed; label a=b added"},
		{"no content", `{kind: Event, action: a}`, `{kind: Event, action: b}`, "action a → b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := new(change.Comparer).Between(object(t, tc.before, 1), object(t, tc.after, 2))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(c.Summary, "; "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestArrivals(t *testing.T) {
	pod := object(t, `{kind: Pod, metadata: {managedFields: [{manager: kubectl, operation: Update, time: x}]}}`, 1)
	event := object(t, `{kind: Event, type: Warning, reason: BackOff, message: "restarting\nfailed"}`, 1)
	for _, tc := range []struct {
		before, after *scan.Object
		want          change.Change
	}{
		{nil, pod, change.Change{Summary: []string{"created"}, By: []change.Manager{{Manager: "kubectl", Operation: "Update", Time: "x"}}}},
		{pod, nil, change.Change{Summary: []string{"deleted"}}},
		{nil, event, change.Change{Summary: []string{"Warning BackOff: restarting failed"}}},
		{event, nil, change.Change{Summary: []string{"deleted", "Warning BackOff: restarting failed"}}},
	} {
		got, err := new(change.Comparer).Between(tc.before, tc.after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, *got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNoise(t *testing.T) {
	for _, tc := range []struct {
		name, before, after string
		want                []string
		only                bool
	}{
		{"resourceVersion", `{kind: Pod}`, `{kind: Pod}`, []string{"resourceVersion"}, true},
		{"managedFields", `{kind: Pod, metadata: {managedFields: [{manager: a}]}}`, `{kind: Pod, metadata: {managedFields: [{manager: b}]}}`, []string{"managedFields"}, true},
		{"generation", `{kind: Pod, metadata: {generation: 1}}`, `{kind: Pod, metadata: {generation: 2}, status: {observedGeneration: 2}}`, []string{"generation"}, true},
		{"heartbeat", `{kind: Node, status: {conditions: [{type: Ready, lastHeartbeatTime: a}, {type: X, lastHeartbeatTime: a}]}}`,
			`{kind: Node, status: {conditions: [{type: Ready, lastHeartbeatTime: b}, {type: X, lastHeartbeatTime: b}]}}`, []string{"heartbeat"}, true},
		{"lease", `{kind: Lease, spec: {renewTime: a}}`, `{kind: Lease, spec: {renewTime: b}}`, []string{"lease renewal"}, true},
		{"lease taken", `{kind: Lease, spec: {renewTime: a, holderIdentity: x}}`, `{kind: Lease, spec: {renewTime: b, holderIdentity: y}}`, []string{"lease renewal"}, false},
		{"event", `{kind: Event, count: 1, lastTimestamp: a}`, `{kind: Event, count: 2, lastTimestamp: b, series: {count: 2}}`, []string{"event count"}, true},
		{"count of others", `{kind: Widget, count: 1}`, `{kind: Widget, count: 2}`, []string{}, false},
		{"template of a DaemonSet", `{kind: DaemonSet, metadata: {annotations: {deprecated.daemonset.template.generation: "1"}}}`,
			`{kind: DaemonSet, metadata: {annotations: {deprecated.daemonset.template.generation: "2"}}}`, []string{"generation"}, true},
		{"leader", `{kind: Endpoints, metadata: {annotations: {control-plane.alpha.kubernetes.io/leader: a}}}`, `{kind: Endpoints}`, []string{"lease renewal"}, true},
		{"metrics", `{kind: HorizontalPodAutoscaler, status: {currentMetrics: [1]}}`, `{kind: HorizontalPodAutoscaler, status: {currentMetrics: [2]}}`, []string{"metrics"}, true},
		{"a condition", `{kind: Node, status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: a}]}}`,
			`{kind: Node, status: {conditions: [{type: Ready, status: "False", lastHeartbeatTime: b}]}}`, []string{"heartbeat"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, after := object(t, tc.before, 1), object(t, tc.after, 2)
			c, err := new(change.Comparer).Between(before, after)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.Noise, cmpopts.EquateEmpty()); diff != "" || c.OnlyNoise != tc.only || (len(c.Patch) == 0) != tc.only {
				t.Errorf("%+v\n%s", c, diff)
			}
			all, err := (&change.Comparer{Noise: true}).Between(before, after)
			if err != nil {
				t.Fatal(err)
			}
			applies(t, all.Patch, before.JSON, after.JSON)
		})
	}
}

// applies checks that a patch makes one object of another.
func applies(t *testing.T, patch change.Patch, before, after string) {
	t.Helper()
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	if len(patch) == 0 {
		text = []byte("[]")
	}
	p, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	got, err := p.Apply([]byte(before))
	if err != nil {
		t.Fatalf("%v: %s to %s", err, text, before)
	}
	if diff := cmp.Diff(decode(t, after), decode(t, string(got))); diff != "" {
		t.Fatalf("%s\n%s makes\n%s instead of\n%s", before, text, got, after)
	}
}

func decode(t *testing.T, text string) (value any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
