// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Align moves the times of a Pod's status to the clock of the API server and the gateway, if
// the clock of its Node shows that it is ahead or behind: no time is later than when the status
// was written (see [Written]), and the kubelet has not seen the Pod before it was scheduled.
// The times of one Node keep their distances. The page does the same (ui/src/data/aligned.ts).
func Align(pod *corev1.Pod, seen time.Time) {
	times := statusTimes(pod)
	var latest time.Time
	for _, t := range times {
		if t.After(latest) {
			latest = t.Time
		}
	}
	by := behind(pod)
	if written := Written(pod.ManagedFields, "status", seen); !written.IsZero() {
		by = min(by, written.Sub(latest))
	}
	if by == 0 {
		return
	}
	for _, t := range times {
		if !t.IsZero() {
			t.Time = t.Add(by)
		}
	}
}

// behind returns by how much the clock of a Pod's Node was behind, at least, when its kubelet
// saw the Pod first. A mirror Pod is older than its object.
func behind(pod *corev1.Pod) time.Duration {
	first := pod.Status.StartTime
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror || first.IsZero() {
		return 0
	}
	// The kubelet writes the condition of a Pod that was created with its Node.
	scheduled := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.LastTransitionTime.After(scheduled) {
			scheduled = c.LastTransitionTime.Time
		}
	}
	return max(0, scheduled.Sub(first.Time))
}

// statusTimes returns the times that the kubelet writes into the status of a Pod.
func statusTimes(pod *corev1.Pod) (times []*metav1.Time) {
	if pod.Status.StartTime != nil {
		times = append(times, pod.Status.StartTime)
	}
	for _, all := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range all {
			for _, state := range []*corev1.ContainerState{&all[i].State, &all[i].LastTerminationState} {
				if state.Running != nil {
					times = append(times, &state.Running.StartedAt)
				}
				if state.Terminated != nil {
					times = append(times, &state.Terminated.StartedAt, &state.Terminated.FinishedAt)
				}
			}
		}
	}
	for i := range pod.Status.Conditions {
		switch c := &pod.Status.Conditions[i]; c.Type {
		case corev1.PodScheduled, corev1.DisruptionTarget: // of a controller
		default:
			times = append(times, &c.LastTransitionTime)
		}
	}
	return times
}

// Written returns when a subresource of an object was last written, "" for none: managedFields
// say it by the clock of the API server, and seen, when the gateway observed this version, by
// its own. The earlier one counts; the zero time if neither is known.
func Written(managed []metav1.ManagedFieldsEntry, subresource string, seen time.Time) (written time.Time) {
	for _, m := range managed {
		if m.Subresource == subresource && m.Time != nil && m.Time.After(written) {
			written = m.Time.Time
		}
	}
	if written.IsZero() || !seen.IsZero() && seen.Before(written) {
		return seen
	}
	return written
}

// Disruptions has the reasons of the condition DisruptionTarget, in words.
var Disruptions = map[string]string{
	"PreemptionByScheduler":  "preempted by the scheduler",
	"EvictionByEvictionAPI":  "evicted by the eviction API",
	"DeletionByTaintManager": "evicted because of a NoExecute taint",
	"DeletionByPodGC":        "deleted by the Pod garbage collector",
	"TerminationByKubelet":   "terminated by the kubelet",
}

// Disruption returns the condition that says why a Pod is or was disrupted, nil for none. One that
// was set after the deletion had been requested is not its cause: the taint manager and the
// eviction API mark Pods that somebody else has deleted, too. The garbage collector ends these.
func Disruption(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
			continue
		}
		if end := pod.DeletionTimestamp; end != nil && pod.DeletionGracePeriodSeconds != nil && c.Reason != "DeletionByPodGC" {
			if c.LastTransitionTime.After(Requested(end.Time, *pod.DeletionGracePeriodSeconds).Add(time.Second)) { // of two clocks, in seconds
				return nil
			}
		}
		return c
	}
	return nil
}

// Requested returns when a deletion was requested whose grace period, in seconds, ends at a time.
func Requested(end time.Time, grace int64) time.Time {
	return end.Add(-time.Duration(min(max(grace, 0), 1<<30)) * time.Second)
}
