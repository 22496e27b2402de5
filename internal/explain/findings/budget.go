// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// budgetsFound finds PodDisruptionBudgets that allow no eviction, while Pods that they select
// are on a cordoned Node: a drain waits for them. A budget whose Pods are healthy, but that
// never allows one, is a finding only then, too: it harms nothing else.
func (s *State) budgetsFound(g *group) {
	cordoned := map[string]*corev1.Node{}
	for _, node := range s.nodes {
		if node.Spec.Unschedulable {
			cordoned[node.Name] = node
		}
	}
	for _, b := range s.budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || b.Status.DisruptionsAllowed > 0 || b.Status.ExpectedPods == 0 || b.DeletionTimestamp != nil {
			continue
		}
		subject := refOf("PodDisruptionBudget", b.Namespace, b.Name)
		nodes, since := map[string]bool{}, cmp.Or(budgetSince(b), b.CreationTimestamp.Time)
		for _, pod := range s.sortedPods() {
			node := cordoned[pod.Spec.NodeName]
			if pod.Namespace != b.Namespace || node == nil || pod.DeletionTimestamp != nil || !selector.Matches(labels.Set(pod.Labels)) || change.Ended(pod) {
				continue
			}
			f := g.of(subject, "", api.SeverityWarning)
			f.Objects = append(f.Objects, podRef(pod))
			nodes[node.Name] = true
			if at := cordonedSince(node); at.After(since) {
				f.from(at)
			} else {
				f.from(since)
			}
		}
		f := g.found[subject.Kind+"\x00"+string(subject.Key)+"\x00"]
		if f == nil {
			continue
		}
		names := ""
		for name := range nodes {
			if names == "" || name < names {
				names = name
			}
		}
		if more := len(nodes) - 1; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		f.Title = fmt.Sprintf("allows no disruption: %s on the cordoned Node %s", words.Count(len(f.Objects), "Pod"), names)
		f.say(budgetSays(b))
	}
}

// cordonedSince returns when the taint of a cordoned Node was added, zero if that is not known.
func cordonedSince(node *corev1.Node) time.Time {
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			return t.TimeAdded.Time
		}
	}
	return time.Time{}
}

func budgetSince(b *policyv1.PodDisruptionBudget) time.Time {
	for _, c := range b.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse {
			return transition(b, c.LastTransitionTime)
		}
	}
	return time.Time{}
}

// budgetSays returns the status of a budget in words.
func budgetSays(b *policyv1.PodDisruptionBudget) string {
	text := fmt.Sprintf("%d of %d Pods are healthy, %d have to be", b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy)
	for _, c := range b.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse {
			return because(c.Reason, c.Message, text)
		}
	}
	return text
}
