// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// maxProbeAge is how old the last Event about a failed probe may be: the kubelet repeats it
// at each failure, but writes it more and more seldom.
const maxProbeAge = 15 * time.Minute

// notReady finds Pods that run, but are not ready. The Event about the failed probe says
// why.
func (s *State) notReady(g *group) {
	for _, pod := range s.sortedPods() {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || s.lost(pod) || change.Failing(pod, s.at("pods")) {
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type != corev1.PodReady || c.Status == corev1.ConditionTrue || s.at("pods").Sub(transition(pod, c.LastTransitionTime)) < minAge {
				continue
			}
			workload := s.podWorkload(pod)
			f := g.of(workload, "", s.severity(workload))
			f.Objects = append(f.Objects, podRef(pod))
			f.from(transition(pod, c.LastTransitionTime))
			probe := s.failedProbe(pod, "Readiness", "Startup", "Liveness")
			if probe != nil {
				f.say(probe.says())
			} else {
				f.say(because(c.Reason, c.Message))
			}
			f.refine = func(f *Finding) {
				f.Title = words.Count(len(f.Objects), "Pod") + " not ready"
				for text := range f.said {
					if kind, _, ok := strings.Cut(strings.TrimPrefix(text, "Unhealthy: "), " probe failed"); ok {
						f.Title = words.Count(len(f.Objects), "Pod") + " not ready: " + strings.ToLower(kind) + " probe failed"
						break
					}
				}
			}
		}
	}
}

// failedProbe returns the latest Event about a failed probe of a Pod of one of some kinds; nil if
// there is none.
func (s *State) failedProbe(pod *corev1.Pod, kinds ...string) *event {
	return s.lastAbout(string(pod.UID), func(e *event) bool {
		kind, _, _ := strings.Cut(e.message, " ")
		return e.reason == "Unhealthy" && slices.Contains(kinds, kind) && !e.last.Before(s.at("pods").Add(-maxProbeAge))
	})
}
