// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// unscheduled finds Pods for which the scheduler finds no Node, or at which it has not looked for a
// minute: it does not run, or has another name. Pods with scheduling gates wait because somebody
// wants them to.
func (s *State) unscheduled(g *group) {
	for _, pod := range s.sortedPods() {
		if pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending || len(change.Containers(pod)) > 0 {
			continue
		}
		since, least := pod.CreationTimestamp.Time, minAge
		says := fmt.Sprintf("the scheduler %s has not looked at it", cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName))
		if c := condition(pod, corev1.PodScheduled); c != nil { // which a scheduler writes
			since, least = cmp.Or(transition(pod, c.LastTransitionTime), since), minUnscheduled
			if says = because(c.Reason, c.Message); c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
				continue
			}
		}
		if since.IsZero() || s.at("pods").Sub(since) < least {
			continue
		}
		workload := s.podWorkload(pod)
		f := g.of(workload, "", s.severity(workload))
		f.Objects = append(f.Objects, podRef(pod))
		f.from(since)
		f.say(says)
		if len(f.Related) == 0 {
			f.Related = s.closedNodes()
		}
		f.refine = func(f *Finding) { f.Title = words.Count(len(f.Objects), "Pod") + " Pending, not scheduled" }
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
