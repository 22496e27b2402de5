// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// nodesFound finds Nodes that are not ready or under pressure, with the Pods on them.
func (s *State) nodesFound(g *group) {
	slices.SortFunc(s.nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, node := range s.nodes {
		bad := badNode(node)
		if bad == nil {
			continue
		}
		f := g.of(refOf("Node", "", node.Name), "", api.SeverityWarning)
		f.Objects = append(f.Objects, f.Subject)
		for _, pod := range s.pods {
			if pod.Spec.NodeName == node.Name && !change.Ended(pod) {
				f.Objects = append(f.Objects, podRef(pod))
			}
		}
		var said []string
		if c := notReadyNode(node); c != nil {
			f.Severity, bad = api.SeverityCritical, []corev1.NodeCondition{*c}
		}
		for _, c := range bad {
			f.say(because(c.Reason, c.Message))
			f.from(transition(node, c.LastTransitionTime))
			said = append(said, conditionWords(c))
		}
		pods := len(f.Objects) - 1
		f.Title = strings.Join(said, ", ")
		if pods > 0 {
			f.Title += fmt.Sprintf(" · %s on it", words.Count(pods, "Pod"))
		}
	}
}

// nodesDeleted finds Nodes that do not exist, by the Pods that are bound to them. Their status is
// the last that the Node's kubelet has written, until they are collected as garbage.
func (s *State) nodesDeleted(g *group) {
	for _, pod := range s.sortedPods() {
		// The list of Nodes may be a moment older than that of Pods.
		if change.Ended(pod) || !s.deleted(pod.Spec.NodeName) || s.at("pods").Sub(pod.CreationTimestamp.Time) < minUnscheduled {
			continue
		}
		f := g.of(refOf("Node", "", pod.Spec.NodeName), "", api.SeverityWarning)
		if f.Objects == nil {
			f.Objects = append(f.Objects, f.Subject)
		}
		f.Objects = append(f.Objects, podRef(pod))
		f.Title = "does not exist · " + words.Count(len(f.Objects)-1, "Pod") + " on it"
	}
}

// conditionWords are the page's.
func conditionWords(c corev1.NodeCondition) string {
	switch {
	case c.Type != corev1.NodeReady:
		return string(c.Type)
	case c.Status == corev1.ConditionUnknown:
		return "NotReady: kubelet stopped posting node status"
	}
	return "NotReady"
}

// badNode returns the conditions of a Node that are not good news.
func badNode(node *corev1.Node) (bad []corev1.NodeCondition) {
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			if c.Status != corev1.ConditionTrue {
				bad = append(bad, c)
			}
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			if c.Status == corev1.ConditionTrue {
				bad = append(bad, c)
			}
		}
	}
	return bad
}

// notReadyNode returns the condition Ready of a Node that is not ready, nil if it is ready.
func notReadyNode(node *corev1.Node) *corev1.NodeCondition {
	for i, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// lost reports whether the Node of a Pod is not ready or does not exist, so that nobody writes
// the Pod's status. The Node is then the finding.
func (s *State) lost(pod *corev1.Pod) bool {
	return s.deleted(pod.Spec.NodeName) || slices.ContainsFunc(s.nodes, func(node *corev1.Node) bool {
		return node.Name == pod.Spec.NodeName && notReadyNode(node) != nil
	})
}
