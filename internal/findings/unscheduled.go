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
			if pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" || s.at("pods").Sub(since) < minUnscheduled ||
				c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
				continue
			}
			workload := s.podWorkload(pod)
			f := g.of(workload, "", s.severity(workload))
			f.Objects = append(f.Objects, podRef(pod))
			f.from(since)
			f.say(because(c.Reason, c.Message))
			if len(f.Related) == 0 {
				f.Related = s.closedNodes()
			}
			f.refine = func(f *Finding) { f.Title = count(len(f.Objects), "Pod") + " Pending, not scheduled" }
		}
	}
}

// maxClosed is of how many Nodes that take no Pods the changes matter.
const maxClosed = 10

// closedNodes returns the first Nodes that take no Pods, because they are cordoned or not ready.
func (s *State) closedNodes() (all []Ref) {
	for _, node := range s.nodes {
		if len(all) < maxClosed && (node.Spec.Unschedulable || notReadyNode(node) != nil) {
			all = append(all, refOf("Node", "", node.Name))
		}
	}
	return all
}
