// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// TestFaultOf: of all that a status says, the fault that says most counts.
func TestFaultOf(t *testing.T) {
	const oom = `"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}`
	for status, want := range map[string]string{
		`{"phase":"Failed","reason":"Evicted","message":"low on memory"}`:                                                                                          "status.reason: Evicted (low on memory)",
		`{"phase":"Succeeded","containerStatuses":[{"name":"a",` + oom + `}]}`:                                                                                     "",
		`{"containerStatuses":[{"name":"a","state":{"terminated":{"exitCode":1,"message":"x\nno database"}}}]}`:                                                    "status.containerStatuses[a].state.terminated: Error (exit 1: no database)",
		`{"containerStatuses":[{"name":"a","state":{"running":{}},` + oom + `}]}`:                                                                                  "", // it recovers
		`{"containerStatuses":[{"name":"a","state":{"waiting":{"reason":"ErrImagePull","message":"not found"}}},{"name":"b","state":{"waiting":{}},` + oom + `}]}`: "status.containerStatuses[b].lastState.terminated: OOMKilled (exit 137, memory limit 64Mi)",
		`{"initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"ErrImagePull"}}}]}`:                                                                   "status.initContainerStatuses[i].state.waiting: ErrImagePull",
		`{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1 nodes"}]}`:                                                 "status.conditions[PodScheduled]: Unschedulable (0/1 nodes)",
		`{"containerStatuses":[{"name":"a","state":{"waiting":{"reason":"ContainerCreating"}}}]}`:                                                                  "",
	} {
		pod := &corev1.Pod{}
		if err := json.Unmarshal([]byte(`{"spec":{"containers":[{"name":"b","resources":{"limits":{"memory":"64Mi"}}}]},"status":`+status+`}`), pod); err != nil {
			t.Fatal(err)
		}
		got := ""
		if f := change.FaultOf(pod, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }); f != nil {
			got = f.Field + ": " + f.Words()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", status, got, want)
		}
	}
}
