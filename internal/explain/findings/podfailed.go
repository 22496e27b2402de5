// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/explain/workload"
)

// failedPods finds Pods in the phase Failed, such as evicted ones. Those of a Job are a part
// of it: it decides whether they may fail.
func (s *State) failedPods(g *group) {
	for _, pod := range s.sortedPods() {
		if pod.Status.Phase != corev1.PodFailed || pod.DeletionTimestamp != nil || ofJob(pod) {
			continue
		}
		reason := pod.Status.Reason
		var end *corev1.ContainerStateTerminated
		since := pod.CreationTimestamp.Time
		for _, c := range change.Containers(pod) {
			if e := change.LastEnd(c); e != nil {
				reason = cmp.Or(reason, e.Reason)
				end, since = e, e.FinishedAt.Time
			}
		}
		reason = cmp.Or(reason, "Error")
		if t := conditionTime(pod, corev1.DisruptionTarget); !t.IsZero() {
			since = t
		} else if t := conditionTime(pod, corev1.PodReady); !t.IsZero() {
			since = t
		}
		workload := s.podWorkload(pod)
		f := g.of(workload, reason, s.severity(workload))
		f.Objects = append(f.Objects, podRef(pod))
		f.from(since)
		f.say(pod.Status.Message, disruption(pod))
		f.refine = func(f *Finding) {
			f.Title = words.Count(len(f.Objects), "Pod") + " " + reason
			if end != nil && pod.Status.Reason == "" {
				f.Title += " · " + besideReason(endWords(end), reason)
			}
		}
	}
}

// disruption returns why a Pod is or was disrupted, as its condition says.
func disruption(pod *corev1.Pod) string {
	if c := change.Disruption(pod); c != nil {
		return because(c.Reason, c.Message)
	}
	return ""
}

func ofJob(pod *corev1.Pod) bool {
	for _, o := range pod.OwnerReferences {
		if o.Kind == "Job" {
			return true
		}
	}
	return false
}

// preempted finds workloads of which the scheduler has preempted Pods, as Events or the Pods'
// conditions say. The Events are kept for an hour.
func (s *State) preempted(g *group) {
	seen := map[Ref]bool{}
	for _, pod := range s.sortedPods() {
		if c := change.Disruption(pod); c != nil && c.Reason == corev1.PodReasonPreemptionByScheduler {
			s.preempt(g, s.podWorkload(pod), podRef(pod), seen).from(transition(pod, c.LastTransitionTime))
		}
	}
	for _, e := range s.sorted() {
		if e.reason != "Preempted" || e.object.Kind != "Pod" {
			continue
		}
		ref := refOf("Pod", e.object.Namespace, e.object.Name)
		f := s.preempt(g, s.goneWorkload(e), ref, seen)
		f.from(e.first)
		f.say(e.says())
		for _, uid := range uidPattern.FindAllString(e.message, -1) {
			if o := s.preemptors[uid]; o != nil { // for which it was preempted
				f.Related = append(f.Related, s.workload(refOf("Pod", o.Key.Namespace(), o.Key.Name()), workload.Read(o).Metadata.OwnerReferences))
			}
		}
	}
}

func (s *State) preempt(g *group, workload, pod Ref, seen map[Ref]bool) *Finding {
	severity := s.severity(workload)
	if s.complete(workload) {
		severity = api.SeverityInfo
	}
	f := g.of(workload, "", severity)
	if !seen[pod] {
		seen[pod] = true
		f.Objects = append(f.Objects, pod)
	}
	f.refine = func(f *Finding) { f.Title = words.Count(len(f.Objects), "Pod") + " preempted" }
	return f
}

// goneWorkload returns the workload of the Pod that an Event is about, which may be deleted.
func (s *State) goneWorkload(e *event) Ref {
	i := slices.IndexFunc(s.pods, func(p *corev1.Pod) bool { return p.UID != "" && p.UID == e.object.UID })
	if i >= 0 {
		return s.podWorkload(s.pods[i])
	}
	ref := refOf("Pod", e.object.Namespace, e.object.Name)
	if l := s.lastSeen(ref); l != nil {
		return s.workload(ref, l.Metadata.OwnerReferences)
	}
	return ref
}
