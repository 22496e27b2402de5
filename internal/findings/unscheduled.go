// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// unscheduled finds Pods for which the scheduler finds no Node.
func (s *State) unscheduled(g *group) {
	for _, pod := range s.sortedPods() {
		for _, c := range pod.Status.Conditions {
			since := cmp.Or(transition(pod, c.LastTransitionTime), pod.CreationTimestamp.Time)
			if pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" || s.At.Sub(since) < minUnscheduled ||
				c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
				continue
			}
			workload := s.podWorkload(pod)
			f := g.of(workload, "", s.severity(workload))
			f.Objects = append(f.Objects, podRef(pod))
			f.from(since)
			f.say(because(c.Reason, c.Message))
			f.refine = func(f *Finding) { f.Title = count(len(f.Objects), "Pod") + " Pending, not scheduled" }
		}
	}
}
