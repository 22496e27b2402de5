// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/explain/workload"
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

// addShort adds a controller of Pods whose status has fewer ready Pods than it wants, by its text.
func (s *State) addShort(r kube.Resource, o *scan.Object) {
	spec, status, ok := specAndStatus(o)
	ready, wanted := number(status, "readyReplicas"), cmp.Or(number(spec, "replicas"), "1")
	if r.Name == "daemonsets" {
		ready, wanted = number(status, "numberReady"), number(status, "desiredNumberScheduled")
	}
	if ok && cmp.Or(ready, "0") != wanted {
		s.short = append(s.short, &incomplete{Ref{Resource: r.GroupResource(), Kind: o.Kind, Key: o.Key}, workload.Read(o)})
	}
}

// shortOfPods finds workloads that say themselves, for a minute, that too few of their Pods are
// ready, where the Pods are not known: they may not be listed, or are not recorded.
func (s *State) shortOfPods(g *group) {
	if s.AllPods {
		return
	}
	for _, c := range s.short {
		ready, want := c.light.Ready()
		known := slices.ContainsFunc(g.before, func(f *Finding) bool { return f.Subject == c.ref })
		if ready >= want || known || c.light.Metadata.DeletionTimestamp != nil || s.workload(c.ref, c.light.Metadata.OwnerReferences) != c.ref {
			continue
		}
		since, says := s.written(c, ""), ""
		if cond, ok := c.light.Condition("Available"); ok && cond.Status == "False" {
			since, says = cond.LastTransitionTime.Time, because(cond.Reason, cond.Message)
		}
		if s.at(c.ref.Resource).Sub(since) < minAge {
			continue
		}
		f := g.of(c.ref, "", s.severity(c.ref))
		f.Objects = append(f.Objects, c.ref)
		f.from(since)
		f.say(says)
		f.Title = fmt.Sprintf("%d of %d Pods are ready; the Pods, which say why, are not known", ready, want)
	}
}
