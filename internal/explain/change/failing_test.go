// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFailing(t *testing.T) {
	start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	after := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	stamp := func(seconds int) metav1.Time { return metav1.NewTime(after(seconds)) }
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(0)}}
	for name, test := range map[string]struct {
		phase   corev1.PodPhase
		state   corev1.ContainerState
		last    corev1.ContainerState
		count   int32
		ready   int // since when; -1 if it is not
		init    bool
		deleted bool
		until   int // when it stops failing; 0 if it does not fail, -1 if it does not stop
	}{
		"starts":                       {corev1.PodPending, waiting("ContainerCreating"), corev1.ContainerState{}, 0, -1, false, false, 0},
		"cannot pull":                  {corev1.PodPending, waiting("ImagePullBackOff"), corev1.ContainerState{}, 0, -1, false, false, -1},
		"runs":                         {corev1.PodRunning, running, corev1.ContainerState{}, 0, 0, false, false, 0},
		"crashed":                      {corev1.PodRunning, ended(1), corev1.ContainerState{}, 0, -1, false, false, -1},
		"crashed in an init container": {corev1.PodPending, ended(1), corev1.ContainerState{}, 0, -1, true, false, -1},
		"is done":                      {corev1.PodSucceeded, ended(0), corev1.ContainerState{}, 0, -1, false, false, 0},
		"failed":                       {corev1.PodFailed, ended(1), corev1.ContainerState{}, 0, -1, false, false, -1},
		"was evicted":                  {corev1.PodFailed, corev1.ContainerState{}, corev1.ContainerState{}, 0, -1, false, false, -1},
		"is deleted":                   {corev1.PodRunning, ended(1), corev1.ContainerState{}, 0, -1, false, true, 0},
		"runs after its first crash":   {corev1.PodRunning, running, ended(1), 1, 0, false, false, 60},
		"is ready later":               {corev1.PodRunning, running, ended(1), 1, 8, false, false, 68},
		"is ready much later":          {corev1.PodRunning, running, ended(1), 1, 80, false, false, 60},
		"is not ready":                 {corev1.PodRunning, running, ended(1), 3, -1, false, false, 60},
		"has crashed four times":       {corev1.PodRunning, running, ended(1), 4, 0, false, false, 80},
		"has crashed often":            {corev1.PodRunning, running, ended(1), 1_000_000_000, 0, false, false, 300},
		"has no count":                 {corev1.PodRunning, running, ended(1), -5, 0, false, false, 60},
		"runs after it was done":       {corev1.PodRunning, running, ended(0), 3, 0, false, false, 0},
	} {
		status := []corev1.ContainerStatus{{State: test.state, LastTerminationState: test.last, RestartCount: test.count}}
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: test.phase, ContainerStatuses: status}}
		if test.init {
			pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = nil, status
		}
		if test.ready >= 0 {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: stamp(test.ready)}}
		}
		if test.deleted {
			deleted := stamp(0)
			pod.DeletionTimestamp = &deleted
		}
		check := func(pod *corev1.Pod, clock string) {
			for _, second := range []int{0, 59, 60, 67, 68, 79, 80, 299, 300, 100_000} {
				want := test.until < 0 || second < test.until
				if got := Failing(pod, after(second)); got != want {
					t.Errorf("a Pod that %s, after %d s, with %s: failing %v", name, second, clock, got)
				}
				if got := StillFailing(pod, after(second)); got != (want || test.until > 0 && second <= 300 && got) || test.until > 0 && second < 300 && !got {
					t.Errorf("a Pod that %s, after %d s, with %s, before it fails again: failing %v", name, second, clock, got)
				}
			}
		}
		check(pod, "one clock")
		// The clock of the Node is ahead.
		written := stamp(max(0, test.ready))
		for _, ahead := range []time.Duration{time.Second, time.Minute, time.Hour, 1000 * time.Hour} {
			for _, managed := range []bool{false, true} {
				far, seen := pod.DeepCopy(), written.Time
				for _, at := range statusTimes(far) {
					if !at.IsZero() {
						at.Time = at.Add(ahead)
					}
				}
				if managed {
					// The Pod was seen again later, as in a list.
					far.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: after(200_000)}}, {Subresource: "status", Time: &written}}
					seen = after(150_000)
				}
				Align(far, seen)
				check(far, fmt.Sprintf("a clock that is ahead by %s, managedFields %v", ahead, managed))
			}
		}
		// It is behind.
		for _, by := range []time.Duration{time.Second, 10 * time.Minute, 1000 * time.Hour} {
			for _, seen := range []time.Time{{}, written.Time} {
				far := pod.DeepCopy()
				first, scheduled := stamp(-100), stamp(-100)
				far.CreationTimestamp, far.Status.StartTime = stamp(-200), &first
				for _, at := range statusTimes(far) {
					if !at.IsZero() {
						at.Time = at.Add(-by)
					}
				}
				far.Status.Conditions = append(far.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: scheduled})
				Align(far, seen)
				Align(far, written.Time)
				check(far, fmt.Sprintf("a clock that is behind by %s, seen at %s", by, seen))
			}
		}
	}
}

// TestAlignBehind: the times of a Node whose clock is behind are moved by what its first one
// shows, and not beyond the time of the write.
func TestAlignBehind(t *testing.T) {
	created := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	stamp := func(after time.Duration) metav1.Time { return metav1.NewTime(created.Add(after)) }
	for name, test := range map[string]struct {
		start, scheduled, written time.Duration
		mirror                    bool
		want                      time.Duration // of a start 20 s after the first time of the Node
	}{
		"behind":                            {-10 * time.Minute, 2 * time.Second, time.Hour, false, 22 * time.Second},
		"bound to its Node when created":    {-10 * time.Minute, -10 * time.Minute, time.Hour, false, 20 * time.Second},
		"written before":                    {-10 * time.Minute, 2 * time.Second, 15 * time.Second, false, 15 * time.Second},
		"not behind":                        {3 * time.Second, 2 * time.Second, time.Hour, false, 23 * time.Second},
		"a mirror Pod is older than itself": {-10 * time.Minute, 2 * time.Second, time.Hour, true, -10*time.Minute + 20*time.Second},
	} {
		first, written := stamp(test.start), stamp(test.written)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: stamp(0), ManagedFields: []metav1.ManagedFieldsEntry{{Subresource: "status", Time: &written}},
		}, Status: corev1.PodStatus{
			StartTime:         &first,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: stamp(test.scheduled)}},
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(test.start + 20*time.Second)}}}},
		}}
		if test.mirror {
			pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}
		for range 2 { // again, it changes nothing
			Align(pod, time.Time{})
		}
		if got := pod.Status.ContainerStatuses[0].State.Running.StartedAt.Sub(created); got != test.want {
			t.Errorf("%s: started %s after the Pod was created, want %s", name, got, test.want)
		}
	}
}
