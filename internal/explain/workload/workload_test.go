// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/workload"
)

func read(kind, json string) *workload.Object {
	return workload.Read(&scan.Object{Kind: kind, JSON: json})
}

// TestRolling: a rollout is in progress as long as the status proves it, and complete when
// 'kubectl rollout status' says so.
func TestRolling(t *testing.T) {
	for _, test := range []struct {
		kind, json        string
		proves            string // field and text; "" for no proof
		rolling, complete bool
	}{
		{"Deployment", `{"spec":{"replicas":2},"status":{"replicas":2,"updatedReplicas":2,"availableReplicas":2}}`, "status.updatedReplicas: 2 of 2", false, true},
		{"Deployment", `{"spec":{"replicas":2},"status":{"replicas":3,"updatedReplicas":1,"availableReplicas":2}}`, "status.updatedReplicas: 1 of 3", true, false},
		{"Deployment", `{"spec":{"replicas":5},"status":{"replicas":2,"updatedReplicas":2,"conditions":[{"type":"Progressing","reason":"NewReplicaSetAvailable"}]}}`, ": ", false, false},
		{"Deployment", `{"metadata":{"generation":2},"spec":{"replicas":0},"status":{"observedGeneration":1}}`, "status.updatedReplicas: 0 of 0", false, false},
		{"StatefulSet", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},"replicas":4},"status":{"replicas":4,"updatedReplicas":2,"currentReplicas":2,"readyReplicas":2,"currentRevision":"a","updateRevision":"a"}}`, "status.updatedReplicas: 2 of 3", false, false},
		{"StatefulSet", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},"replicas":4},"status":{"replicas":4,"updatedReplicas":1,"currentReplicas":1,"readyReplicas":2,"currentRevision":"a","updateRevision":"b"}}`, "status.updatedReplicas: 1 of 3", false, false},
		{"StatefulSet", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},"replicas":4},"status":{"replicas":4,"updatedReplicas":1,"currentReplicas":3,"readyReplicas":4,"currentRevision":"a","updateRevision":"b"}}`, "status.updatedReplicas: 1 of 3", true, false},
		{"StatefulSet", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}},"replicas":3},"status":{"replicas":3,"updatedReplicas":1,"readyReplicas":3,"currentRevision":"a","updateRevision":"b"}}`, "status.updatedReplicas: 1 of 1", false, true},
		{"StatefulSet", `{"status":{"updatedReplicas":0,"replicas":1,"readyReplicas":1,"currentRevision":"a","updateRevision":"b"}}`, "status.updateRevision: b, currentRevision: a", true, false},
		{"StatefulSet", `{"spec":{"replicas":3},"status":{"updatedReplicas":2,"replicas":3,"readyReplicas":2,"currentRevision":"a","updateRevision":"a"}}`, "status.updateRevision: a, currentRevision: a", false, false},
		{"DaemonSet", `{"spec":{"updateStrategy":{"type":"OnDelete"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":2,"updatedNumberScheduled":1}}`, "status.updatedNumberScheduled: 1 of 2", true, false},
	} {
		o := read(test.kind, test.json)
		field, text, rolling := o.Rolling()
		if field+": "+text != test.proves || rolling != test.rolling || o.Complete() != test.complete {
			t.Errorf("%s %s: %s: %s, rolling %v, complete %v", test.kind, test.json, field, text, rolling, o.Complete())
		}
	}
}

// TestPods: only what creates Pods itself may lack some.
func TestPods(t *testing.T) {
	for _, test := range []struct {
		kind, json  string
		exist, want int64
		ok          bool
	}{
		{"ReplicaSet", `{"status":{"replicas":0}}`, 0, 1, true},
		{"StatefulSet", `{"spec":{"replicas":3},"status":{"replicas":2}}`, 2, 3, true},
		{"StatefulSet", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"replicas":3}}`, 0, 0, false},
		{"DaemonSet", `{"status":{"currentNumberScheduled":2,"desiredNumberScheduled":3}}`, 2, 3, true},
		{"Job", `{"spec":{"parallelism":2},"status":{"active":1}}`, 1, 2, true},
		{"Job", `{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, 0, 0, false},
		{"CronJob", `{"status":{"active":[{"name":"a"}]}}`, 0, 0, false},
		{"Deployment", `{"spec":{"replicas":3}}`, 0, 0, false},
	} {
		if exist, want, ok := read(test.kind, test.json).Pods(); exist != test.exist || want != test.want || ok != test.ok {
			t.Errorf("%s %s: %d of %d, %v", test.kind, test.json, exist, want, ok)
		}
	}
}
