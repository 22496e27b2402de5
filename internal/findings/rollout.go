// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/words"
)

// rollouts finds Deployments whose rollout does not progress. What other rules have found of their
// Pods says so in its title.
func (s *State) rollouts(g *group) {
	for _, d := range s.deployments {
		for _, c := range d.Status.Conditions {
			if c.Type != appsv1.DeploymentProgressing || c.Status != corev1.ConditionFalse || c.Reason != "ProgressDeadlineExceeded" {
				continue
			}
			wanted := int32(1)
			if d.Spec.Replicas != nil {
				wanted = *d.Spec.Replicas
			}
			title := fmt.Sprintf("rollout does not progress: %d of %s updated, %d available", d.Status.UpdatedReplicas, words.Count(int(wanted), "replica"), d.Status.AvailableReplicas)
			subject := refOf("Deployment", d.Namespace, d.Name)
			if other := g.ofPods(subject); other != nil {
				other.Title += "; " + title
				other.Severity = api.SeverityCritical
				continue
			}
			f := g.of(subject, "", api.SeverityCritical)
			f.Objects = append(f.Objects, f.Subject)
			f.from(transition(d, c.LastTransitionTime))
			f.say(because(c.Reason, c.Message))
			f.Title = title
		}
	}
}
