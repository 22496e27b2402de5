// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"strings"
	"testing"
)

// TestFirstLine: what somebody on call has to know comes first; "" is the deletion of the object, and
// "…" any text.
func TestFirstLine(t *testing.T) {
	const db = `{kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3}, status: {replicas: %}}`
	web, well := deployment(1, 2, "r/web:1.0", "m", "1", done(1, 2)), node("True", "", "", "")
	for id, puts := range map[string][]string{
		"Deployment/web: Deployment web deleted":       {web, ""},
		"Deployment/web: Deployment web scaled 2 → 0":  {web, deployment(2, 0, "r/web:1.0", "m", "1", done(2, 0))},
		"Node/n1: Node n1 NotReady":                    {well, pod("a", "a", "", "", backOff), node("Unknown", "", "", ""), well},
		"Node/n1: Node n1 cordoned by kubectl-cordon":  {well, alone("done", "", "phase: Succeeded"), node("True", "", "", "unschedulable: true"), alone("done", "", strings.NewReplacer("Running", "Succeeded", "%s", "EvictionByEvictionAPI").Replace(disruption))},
		"Node/n1: Node n1 NotReady…; over after 10s, but cordoned at the end of the story": {well, node("Unknown", "", "", "unschedulable: true"), node("True", "", "", "unschedulable: true")},
		"StatefulSet/db: StatefulSet db: too few Pods": {strings.Replace(db, "%", "0", 1), `{kind: Event, metadata: {name: e}, type: Warning, reason: FailedCreate, message: exceeded quota, involvedObject: {kind: StatefulSet, namespace: shop, name: db, uid: uid-StatefulSet-db}}`, `{kind: Pod, metadata: {name: db-0, creationTimestamp: "2026-01-02T14:00:30Z", ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: uid-StatefulSet-db, controller: true}]}, spec: {nodeName: n1}, status: {` + running + `}}`, strings.Replace(db, "%", "1", 1)},
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
