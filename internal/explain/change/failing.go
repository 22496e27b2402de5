// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// minBackOff and maxBackOff bound the kubelet's delay before it restarts a container:
	// the delay doubles with each restart.
	minBackOff, maxBackOff = 10 * time.Second, 5 * time.Minute
	// minReady is how long a Pod has to be ready after a crash to have recovered, if its
	// back-off is shorter.
	minReady = time.Minute
)

// Failing reports whether a Pod fails at a time: a container cannot start, has crashed, or
// runs again after a crash and has not yet been ready for its back-off, or a minute. So a Pod
// that keeps crashing fails all the time, also while it runs. The page has the same rule
// (ui/src/data/crash.ts).
func Failing(pod *corev1.Pod, at time.Time) bool { return failing(pod, at, minReady) }

// StillFailing is like Failing, for a Pod that is known to fail again at the time: two crashes
// with less than the longest back-off between them are one failure.
func StillFailing(pod *corev1.Pod, at time.Time) bool { return failing(pod, at, maxBackOff) }

func failing(pod *corev1.Pod, at time.Time, ready time.Duration) bool {
	switch {
	case pod.DeletionTimestamp != nil, pod.Status.Phase == corev1.PodSucceeded:
		return false
	case pod.Status.Phase == corev1.PodFailed:
		return true
	}
	for _, c := range Containers(pod) {
		if CannotStart(c) || hasFailed(c.State.Terminated) || recovering(pod, c, at, ready) {
			return true
		}
	}
	return false
}

// Containers returns the status of a Pod's containers, and then that of its init containers.
func Containers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
}

// CannotStart reports whether a container waits for another reason than that it is about to
// start.
func CannotStart(c corev1.ContainerStatus) bool {
	w := c.State.Waiting
	return w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing"
}

// NoImage reports whether a container waits for a reason because it has no image.
func NoImage(reason string) bool {
	return slices.Contains([]string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}, reason)
}

// LastEnd returns how a container ended last that has crashed, or that the kubelet restarts
// more slowly; nil if it has not.
func LastEnd(c corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	last, w := c.LastTerminationState.Terminated, c.State.Waiting
	switch {
	case hasFailed(c.State.Terminated):
		return c.State.Terminated
	case hasFailed(last), w != nil && w.Reason == "CrashLoopBackOff":
		return last
	}
	return nil
}

func hasFailed(t *corev1.ContainerStateTerminated) bool {
	return t != nil && (t.ExitCode != 0 || t.Signal != 0)
}

// recovering reports whether a container runs after a crash, and the Pod has not been ready
// for its back-off and a duration.
func recovering(pod *corev1.Pod, c corev1.ContainerStatus, at time.Time, wait time.Duration) bool {
	if c.State.Running == nil || !hasFailed(c.LastTerminationState.Terminated) {
		return false
	}
	if n := c.RestartCount - 1; n > 0 {
		wait = max(wait, min(minBackOff<<min(n, 5), maxBackOff))
	}
	from := c.State.Running.StartedAt.Time
	for _, condition := range pod.Status.Conditions {
		// A Pod that becomes ready later had another reason for it.
		if ready := condition.LastTransitionTime.Time; condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && ready.After(from) && !ready.After(from.Add(wait)) {
			from = ready
		}
	}
	return at.Before(from.Add(wait))
}
