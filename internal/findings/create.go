// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// maxCreateAge is how old the last Event about a Pod that could not be created may be: the
// controllers try again after at most that time, while it fails.
const maxCreateAge = 17 * time.Minute

// creations finds workloads whose Pods cannot be created: by a quota, an admission webhook,
// a missing ServiceAccount. A ReplicaSet has a condition for it, for the others Events say so.
func (s *State) creations(g *group) {
	lack := lacking{}
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
			wanted := int32(1)
			if rs.Spec.Replicas != nil {
				wanted = *rs.Spec.Replicas
			}
			lack.add(f, self, rs.Status.Replicas, wanted)
		}
	}
	for _, e := range s.sorted() {
		if e.reason != "FailedCreate" || e.object.Kind == "ReplicaSet" || e.kind != corev1.EventTypeWarning || s.at("events").Sub(e.last) > maxCreateAge {
			continue
		}
		self := refOf(e.object.Kind, e.object.Namespace, e.object.Name)
		exist, wanted, ok := replicasOf(self.Kind, s.get(self))
		if !ok || exist >= wanted {
			continue
		}
		f := g.of(s.workload(self, s.get(self).Metadata.OwnerReferences), "", api.SeverityCritical)
		f.Objects = append(f.Objects, self)
		f.from(e.first)
		f.say(e.says())
		lack.add(f, self, exist, wanted)
	}
}

// A lacking has what of its Pods exists, by finding and object.
type lacking map[*Finding]map[Ref][2]int32

func (l lacking) add(f *Finding, of Ref, exist, wanted int32) {
	if l[f] == nil {
		l[f] = map[Ref][2]int32{}
	}
	l[f][of] = [2]int32{exist, wanted}
	f.refine = func(f *Finding) {
		var exist, wanted int64
		for _, n := range l[f] {
			exist, wanted = exist+int64(n[0]), wanted+int64(n[1])
		}
		f.Title = fmt.Sprintf("Pods cannot be created: %d of %d exist", exist, wanted)
	}
}

// replicasOf returns how many Pods exist of those that a workload wants. ok is false for what
// has no Pods.
func replicasOf(kind string, l *light) (exist, wanted int32, ok bool) {
	if l == nil || l.Metadata.DeletionTimestamp != nil {
		return 0, 0, false
	}
	wanted = 1
	switch kind {
	case "StatefulSet", "ReplicaSet", "ReplicationController":
		if l.Spec.Replicas != nil {
			wanted = *l.Spec.Replicas
		}
		return l.Status.Replicas, wanted, true
	case "DaemonSet":
		return l.Status.CurrentNumberScheduled, l.Status.DesiredNumberScheduled, true
	case "Job":
		for _, c := range l.Status.Conditions {
			if c.Status == "True" && (c.Type == "Complete" || c.Type == "Failed" || c.Type == "Suspended") {
				return 0, 0, false
			}
		}
		if l.Spec.Parallelism != nil {
			wanted = *l.Spec.Parallelism
		}
		return l.Status.Active, wanted, true
	}
	return 0, 0, false
}
