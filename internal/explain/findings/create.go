// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// maxCreateAge is how old the last Event about a Pod that could not be created may be: the
// controllers try again after at most that time, while it fails.
const maxCreateAge = 17 * time.Minute

// creations finds workloads whose Pods cannot be created: by a quota, an admission webhook,
// a missing ServiceAccount. A ReplicaSet has a condition for it, for the others Events say so.
func (s *State) creations(g *group) {
	lack := lacking{s, map[*Finding]map[Ref][2]int64{}}
	for _, rs := range s.replicaSets {
		for _, c := range rs.Status.Conditions {
			if c.Type != "ReplicaFailure" || c.Status != corev1.ConditionTrue || c.Reason != "FailedCreate" {
				continue
			}
			self := refOf("ReplicaSet", rs.Namespace, rs.Name)
			f := g.of(s.workload(self, rs.OwnerReferences), "", api.SeverityCritical)
			f.Objects = append(f.Objects, self)
			f.from(transition(rs, c.LastTransitionTime))
			f.say(because(c.Reason, c.Message))
			wanted := int64(1)
			if rs.Spec.Replicas != nil {
				wanted = int64(*rs.Spec.Replicas)
			}
			lack.add(f, self, int64(rs.Status.Replicas), wanted)
		}
	}
	for _, d := range s.deployments { // has the condition of its ReplicaSet, which may not be known
		for _, c := range d.Status.Conditions {
			self := refOf("Deployment", d.Namespace, d.Name)
			if c.Type != appsv1.DeploymentReplicaFailure || c.Status != corev1.ConditionTrue || c.Reason != "FailedCreate" || g.has(self) {
				continue
			}
			f := g.of(self, "", api.SeverityCritical)
			f.Objects = append(f.Objects, self)
			f.from(transition(d, c.LastTransitionTime))
			f.say(because(c.Reason, c.Message))
			f.Title = "Pods cannot be created"
		}
	}
	for _, e := range s.sorted() {
		if e.reason != "FailedCreate" || e.object.Kind == "ReplicaSet" || e.kind != corev1.EventTypeWarning || s.at("events").Sub(e.last) > maxCreateAge {
			continue
		}
		if created, err := time.Parse(time.RFC3339, s.newestPod[string(e.object.UID)]); err == nil && created.After(e.last) {
			continue // since then, it could
		}
		self := refOf(e.object.Kind, e.object.Namespace, e.object.Name)
		l := s.get(self)
		if l == nil {
			continue
		}
		exist, wanted, ok := l.Pods()
		if !ok || exist >= wanted {
			continue
		}
		f := g.of(s.workload(self, l.Metadata.OwnerReferences), "", api.SeverityCritical)
		f.Objects = append(f.Objects, self)
		f.from(e.first)
		f.say(e.says())
		lack.add(f, self, exist, wanted)
	}
}

// A lacking has what of its Pods exists, by finding and object.
type lacking struct {
	state *State
	of    map[*Finding]map[Ref][2]int64
}

func (l lacking) add(f *Finding, of Ref, exist, wanted int64) {
	if l.of[f] == nil {
		l.of[f] = map[Ref][2]int64{}
	}
	l.of[f][of] = [2]int64{exist, wanted}
	f.refine = func(f *Finding) {
		var exist, wanted int64
		for _, n := range l.of[f] {
			exist, wanted = exist+n[0], wanted+n[1]
		}
		f.Title = fmt.Sprintf("Pods cannot be created: %d of %d exist", exist, wanted)
		if whole := l.state.get(f.Subject); whole != nil { // during a rollout, other Pods serve
			if ready, want := whole.Ready(); ready > exist {
				f.Title = fmt.Sprintf("Pods of its rollout cannot be created: %d of %d exist; %d of %d are ready", exist, wanted, ready, want)
			}
		}
	}
}
