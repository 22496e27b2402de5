// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestFirstLine: what somebody on call has to know comes first; "" is the deletion of the object, and "…" any text.
func TestFirstLine(t *testing.T) {
	const db = `{kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3}, status: {replicas: %}}`
	const agent = `{kind: DaemonSet, metadata: {name: agent, generation: %d, managedFields: [{manager: alice, operation: Update, time: "%[1]d", fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}}}]}, spec: {template: {spec: {nodeSelector: {role: %s}, containers: [{name: a, image: x}]}}}, status: {observedGeneration: %[1]d, desiredNumberScheduled: %[3]d, currentNumberScheduled: %[3]d, updatedNumberScheduled: %[3]d, numberReady: %[3]d, numberAvailable: %[3]d}}`
	web, well := deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)), node("True", "", "", "")
	stuck := deployment(2, 2, "r/web:1.1", "m", "1", `observedGeneration: 2, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]`)
	for id, puts := range map[string][]string{
		"Deployment/web: Deployment web deleted": {web, ""},
		"Deployment/web: Deployment web deleted, 10s after that was requested (finalizers: example.com/hold)":                                                            {web, strings.Replace(web, "name: web", `name: web, deletionTimestamp: "2026-01-02T14:00:11Z", finalizers: [example.com/hold]`, 1), ""},
		"Deployment/web: Deployment web scaled 2 → 0":                                                                                                                    {web, deployment(2, 0, "r/web:1.0", "m", "1", done(2, 0))},
		"Deployment/web: Deployment web scaled 2 times between 0 and 2 replicas (2 → 0 → 2) by m; at 0 for 10s":                                                          {web, deployment(2, 0, "r/web:1.0", "m", "1", done(2, 0)), deployment(3, 2, "r/web:1.0", "m", "1", done(3, 2))},
		"Deployment/web: Deployment web scaled 2 → 0 by m; at 0 for 40s":                                                                                                 {web, deployment(2, 0, "r/web:1.0", "m", "1", done(2, 0)), well, well, well, deployment(3, 2, "r/web:1.0", "m", "1", done(3, 2))},
		"Deployment/web: rollout of web from 1.0 to 1.1 (revision 1, by m) failed: ProgressDeadlineExceeded; scaled to 0 by m after 10s":                                 {web, stuck, deployment(3, 0, "r/web:1.1", "m", "1", done(3, 0))},
		"Deployment/web: rollout of web…; Deployment web deleted after 10s":                                                                                              {web, stuck, ""},
		"Deployment/web: rollout of web…; Deployment web deleted after 10s, and created again by m after 10s":                                                            {web, stuck, "", web},
		"Deployment/web: Deployment web deleted, and created again by m after 10s":                                                                                       {web, "", web},
		"Deployment/web: Deployment web scaled 2 → 0 by m…":                                                                                                              {web, stuck, deployment(2, 2, "r/web:1.1", "m", "1", done(2, 2)), deployment(3, 0, "r/web:1.1", "m", "1", done(3, 0))},
		"Deployment/web: Deployment web scaled 2 → 0 by m":                                                                                                               {web, replicaSet("a", "r/web:1.0", ""), pod("a", "web-a", "", "", running), node("Unknown", "", "", ""), well, deployment(2, 0, "r/web:1.0", "m", "1", done(2, 0))},
		"Deployment/web: rollout of web from 1.0 to 1.1 (revision 1, by m) did not complete: 0 of 2 ready for 20s; rolled back to 1.0 by m, complete after less than 1s": {web, deployment(2, 2, "r/web:1.1", "m", "1", done(1, 2)), deployment(2, 2, "r/web:1.1", "m", "1", "observedGeneration: 2, replicas: 2, updatedReplicas: 2"), well, deployment(3, 2, "r/web:1.0", "m", "1", done(3, 2))},
		"Deployment/web: rollout of web…; at 0 replicas at the end of the story":                                                                                         {web, stuck, deployment(3, 0, "r/web:1.1", "m", "1", done(3, 0))},
		"Node/n1: Node n1 deleted; on it Pod a":                                                                                                                          {well, pod("a", "a", "", "", running), ""},
		"Node/n1: Node n1 deleted, and created again by kubectl-cordon after 10s; on it Pod a":                                                                           {well, pod("a", "a", "", "", running), "", well},
		"Deployment/web: Deployment web scaled 3 times between 0 and 2 replicas (2 → 0 → 2 → 0) by m; at 0 for 10s and for 29s at the end of the story":                  {web, deployment(2, 0, "r/web:1.0", "m", "1", done(2, 0)), deployment(3, 2, "r/web:1.0", "m", "1", done(3, 2)), deployment(4, 0, "r/web:1.0", "m", "1", done(4, 0))},
		"Node/n1: Node n1 NotReady…; Node n1 deleted after 20s":                                                                                                          {well, node("Unknown", "", "", ""), well, ""},
		"Node/n1: Node n1: label disk=nvme added":                                                                                                                        {well, strings.Replace(well, "name: n1", "name: n1, labels: {disk: nvme}", 1), strings.Replace(node("True", "KubeletReady", "", ""), "name: n1", "name: n1, labels: {disk: nvme}", 1)},
		"DaemonSet/agent: DaemonSet agent scaled 4 → 0 by alice (template.spec.nodeSelector.role any → edge)":                                                            {fmt.Sprintf(agent, 1, "any", 4), strings.Replace(fmt.Sprintf(agent, 2, "edge", 4), "observedGeneration: 2", "observedGeneration: 1", 1), fmt.Sprintf(agent, 2, "edge", 0)},
		"Node/n1: Node n1 NotReady":                                                        {well, pod("a", "a", "", "", backOff), node("Unknown", "", "", ""), well},
		"Node/n1: Node n1 cordoned by kubectl-cordon":                                      {well, alone("done", "", "phase: Succeeded"), node("True", "", "", "unschedulable: true"), alone("done", "", strings.NewReplacer("Running", "Succeeded", "%s", "EvictionByEvictionAPI").Replace(disruption))},
		"Node/n1: Node n1 NotReady…; over after 10s, but cordoned at the end of the story": {well, node("Unknown", "", "", "unschedulable: true"), node("True", "", "", "unschedulable: true")},
		"StatefulSet/db: StatefulSet db: too few Pods":                                     {strings.Replace(db, "%", "0", 1), `{kind: Event, metadata: {name: e}, type: Warning, reason: FailedCreate, message: exceeded quota, involvedObject: {kind: StatefulSet, namespace: shop, name: db, uid: uid-StatefulSet-db}}`, `{kind: Pod, metadata: {name: db-0, creationTimestamp: "2026-01-02T14:00:30Z", ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: uid-StatefulSet-db, controller: true}]}, spec: {nodeName: n1}, status: {` + running + `}}`, strings.Replace(db, "%", "1", 1)},
	} {
		l := newLog(t)
		id, want, _ := strings.Cut(id, ": ")
		for i, text := range puts {
			if text == "" {
				l.remove(float64(10*i+1), id)
			} else {
				l.put(float64(10*i+1), text)
			}
		}
		want, end, _ := strings.Cut(want, "…")
		if s := l.tell(id, 60); !strings.HasPrefix(main(s).Title, want) || !strings.HasSuffix(main(s).Title, end) || strings.Contains(main(s).Title, "evicted") {
			t.Errorf("%q, want %q", lines(s), want)
		}
	}
}
