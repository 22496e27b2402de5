// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// jobsFound finds failed Jobs. Of a CronJob's, the failed ones count since the last one that
// completed: if that is the newest, the CronJob works again.
func (s *State) jobsFound(g *group) {
	slices.SortFunc(s.jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	works := map[Ref]bool{}
	for _, job := range s.jobs {
		self := refOf("Job", job.Namespace, job.Name)
		subject := s.workload(self, job.OwnerReferences)
		for _, c := range job.Status.Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == batchv1.JobComplete:
				works[subject] = true
			case c.Type == batchv1.JobFailed && !works[subject]:
				f := g.of(subject, "", api.SeverityWarning)
				f.Objects = append(f.Objects, self)
				f.from(transition(job, c.LastTransitionTime))
				f.say(because(c.Reason, c.Message))
				f.refine = func(f *Finding) {
					f.Title = "Failed"
					if f.Subject.Kind != "Job" {
						f.Title = count(len(f.Objects), "Job") + " Failed"
					}
				}
			}
		}
	}
}
