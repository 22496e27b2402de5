// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// rollouts finds Deployments whose rollout does not progress.
func (s *State) rollouts(g *group) {
	for _, d := range s.deployments {
		for _, c := range d.Status.Conditions {
			if c.Type != appsv1.DeploymentProgressing || c.Status != corev1.ConditionFalse || c.Reason != "ProgressDeadlineExceeded" {
				continue
			}
			f := g.of(refOf("Deployment", d.Namespace, d.Name), "", api.SeverityCritical)
			f.Objects = append(f.Objects, f.Subject)
			f.from(transition(d, c.LastTransitionTime))
			f.say(because(c.Reason, c.Message))
			wanted := int32(1)
			if d.Spec.Replicas != nil {
				wanted = *d.Spec.Replicas
			}
			f.Title = fmt.Sprintf("rollout does not progress: %d of %s updated, %d available", d.Status.UpdatedReplicas, count(int(wanted), "replica"), d.Status.AvailableReplicas)
		}
	}
}
