// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
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
						f.Title = words.Count(len(f.Objects), "Job") + " Failed"
					}
				}
			}
		}
	}
}

// maxJobDelay is how long after its scheduled time a Job may be created: kube-controller-manager
// creates many Jobs of the same minute one after the other.
const maxJobDelay = 90 * time.Second

// overdue finds CronJobs that have created no Job for a time of their schedule, although they may.
// Times before the last change are not counted: the schedule may have been another one, and the
// CronJob suspended.
func (s *State) overdue(g *group) {
	now := s.at("cronjobs.batch")
	for _, c := range s.cronJobs {
		schedule, last := scheduleOf(c.Spec), c.Status.LastScheduleTime
		if schedule == nil || c.DeletionTimestamp != nil || c.Spec.Suspend != nil && *c.Spec.Suspend ||
			c.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(c.Status.Active) > 0 {
			continue
		}
		self := refOf("CronJob", c.Namespace, c.Name)
		begin := later(c.CreationTimestamp.Time, change.Written(c.ManagedFields, "", time.Time{}))
		if last != nil {
			begin = later(begin, last.Time)
		}
		start := begin
		if c.Spec.StartingDeadlineSeconds != nil { // no Job is created for an earlier time
			start = later(begin, now.Add(-time.Duration(min(*c.Spec.StartingDeadlineSeconds, 1e9))*time.Second))
		}
		if next(schedule, last, start, now.Add(-maxJobDelay)).IsZero() {
			continue
		}
		due := next(schedule, last, begin, now.Add(-maxJobDelay))
		f := g.of(self, "", api.SeverityCritical)
		f.Objects = append(f.Objects, self)
		f.from(due)
		f.Title = "its controller has not created the Job that was due"
		if e := s.warning(string(c.UID)); e != nil && !e.last.Before(due) {
			f.say(e.says())
		}
	}
}

// next returns the first time after another that a schedule has; the zero time if it has none, or if
// that may be after end. A schedule without a zone is in that of kube-controller-manager, which is not
// known: it may be any in which the last time is one of the schedule. The latest of their times counts.
func next(schedule cron.Schedule, last *metav1.Time, after, end time.Time) (at time.Time) {
	for _, zone := range allZones {
		t := schedule.Next(after.In(zone))
		if t.IsZero() { // it has none for years
			return t
		}
		switch {
		case last != nil && !fits(schedule, last.In(zone)):
		case t.After(end):
			return time.Time{}
		default:
			at = later(at, t)
		}
	}
	if at.IsZero() && last != nil { // it was another schedule's
		return next(schedule, nil, after, end)
	}
	return at
}

// fits reports whether a schedule may have a time, which may be of before or after a change of
// daylight saving.
func fits(schedule cron.Schedule, at time.Time) bool {
	return slices.ContainsFunc([]time.Duration{0, -time.Hour, time.Hour}, func(shift time.Duration) bool {
		t := at.Add(shift)
		return schedule.Next(t.Add(-time.Second)).Equal(t)
	})
}

// allZones has the offsets of all zones, UTC first: in most clusters it is that.
var allZones = func() (all []*time.Location) {
	for offset := -12 * time.Hour; offset <= 14*time.Hour; offset += 15 * time.Minute {
		all = append(all, time.FixedZone("", int(offset.Seconds())))
	}
	return slices.Insert(all, 0, time.UTC)
}()

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// scheduleOf returns a CronJob's schedule, read as its controller does; nil if it is not valid.
func scheduleOf(spec batchv1.CronJobSpec) (schedule cron.Schedule) {
	defer func() { // the parser panics for some
		if recover() != nil {
			schedule = nil
		}
	}()
	text := spec.Schedule
	if spec.TimeZone != nil && !strings.Contains(text, "TZ") {
		text = fmt.Sprintf("TZ=%s %s", *spec.TimeZone, text)
	}
	if schedule, err := cron.ParseStandard(text); err == nil {
		return schedule
	}
	return nil
}
