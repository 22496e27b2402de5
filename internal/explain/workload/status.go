// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Replicas returns how many Pods a workload should have; of a DaemonSet, its status says it.
func (o *Object) Replicas() int64 {
	if o.Spec.Replicas == nil {
		return 1
	}
	return *o.Spec.Replicas
}

// Ready returns how many Pods of a workload are ready, of those that should be.
func (o *Object) Ready() (ready, want int64) {
	if o.Kind == "DaemonSet" {
		return min(o.Status.NumberReady, o.Status.DesiredNumberScheduled), o.Status.DesiredNumberScheduled
	}
	want = o.Replicas()
	return min(o.Status.ReadyReplicas, want), want
}

// ReadyPods returns how many Pods of a workload are ready, at most as many as should be.
func (o *Object) ReadyPods() int64 {
	ready, _ := o.Ready()
	return ready
}

// Readiness says how many Pods of a workload are ready, of those that should be, and which field does.
func (o *Object) Readiness() (field, text string) {
	if field = "status.readyReplicas"; o.Kind == "DaemonSet" {
		field = "status.numberReady"
	}
	ready, want := o.Ready()
	return field, fmt.Sprintf("%d of %d", ready, want)
}

// Short reports whether fewer Pods of a workload are ready than should be.
func (o *Object) Short() bool {
	ready, want := o.Ready()
	return ready < want
}

// Pods returns how many Pods exist of those that their controller wants. ok is false for what
// creates no Pods itself, or none anymore.
func (o *Object) Pods() (exist, want int64, ok bool) {
	if o.Metadata.DeletionTimestamp != nil {
		return 0, 0, false
	}
	switch o.Kind {
	case "StatefulSet", "ReplicaSet", "ReplicationController":
		return o.Status.Replicas, o.Replicas(), true
	case "DaemonSet":
		return o.Status.CurrentNumberScheduled, o.Status.DesiredNumberScheduled, true
	case "Job":
		for _, c := range o.Status.Conditions {
			if c.Status == "True" && (c.Type == "Complete" || c.Type == "Failed" || c.Type == "Suspended") {
				return 0, 0, false
			}
		}
		if want = 1; o.Spec.Parallelism != nil {
			want = *o.Spec.Parallelism
		}
		return o.Status.Active, want, true
	}
	return 0, 0, false
}

// OnDelete reports whether Pods get the newest template only when somebody deletes them.
func (o *Object) OnDelete() bool { return o.Spec.UpdateStrategy.Type == "OnDelete" }

// Partition returns below which ordinal the Pods of a StatefulSet keep what they run.
func (o *Object) Partition() int64 {
	if o.OnDelete() {
		return 0
	}
	return o.Spec.UpdateStrategy.RollingUpdate.Partition
}

// Reaches reports whether the partition is lower than before, and kept Pods from the newest revision.
func (o *Object) Reaches(before *Object) bool {
	return o.Partition() < before.Partition() && o.Status.CurrentRevision != o.Status.UpdateRevision
}

// Complete reports whether a workload runs its newest template everywhere, as 'kubectl rollout
// status' does.
func (o *Object) Complete() bool {
	s, want := o.Status, o.Replicas()
	switch {
	case s.ObservedGeneration < o.Metadata.Generation:
		return false
	case o.Kind == "DaemonSet":
		return s.UpdatedNumberScheduled >= s.DesiredNumberScheduled && s.NumberAvailable >= s.DesiredNumberScheduled
	case o.Kind == "StatefulSet":
		return s.UpdatedReplicas >= max(want, s.Replicas)-o.Partition() && s.ReadyReplicas >= want
	}
	return s.UpdatedReplicas >= want && s.Replicas <= s.UpdatedReplicas && s.AvailableReplicas >= s.UpdatedReplicas
}

// Rolling reports whether a status proves that a rollout has begun and is not over, and which field
// says so. That Pods are missing or not ready is no proof, and with OnDelete, currentRevision is none.
func (o *Object) Rolling() (field, text string, proven bool) {
	s := o.Status
	updated := func(field string, n, of int64) (string, string, bool) {
		return "status." + field, fmt.Sprintf("%d of %d", n, of), n < of
	}
	switch o.Kind {
	case "StatefulSet":
		if p := o.Partition(); p > 0 {
			field, text, _ = updated("updatedReplicas", s.UpdatedReplicas, o.Replicas()-p)
			return field, text, s.CurrentRevision != s.UpdateRevision && s.CurrentReplicas > p // more than it keeps
		} else if o.OnDelete() {
			return updated("updatedReplicas", s.UpdatedReplicas, s.Replicas)
		}
		return "status.updateRevision", fmt.Sprintf("%s, currentRevision: %s", s.UpdateRevision, s.CurrentRevision), s.CurrentRevision != s.UpdateRevision
	case "DaemonSet":
		return updated("updatedNumberScheduled", s.UpdatedNumberScheduled, s.CurrentNumberScheduled)
	}
	switch c, _ := o.Condition("Progressing"); c.Reason {
	case "NewReplicaSetAvailable":
		return "", "", false
	case "NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "ProgressDeadlineExceeded":
		return "status.conditions[" + c.Type + "]", c.Says(), true
	}
	return updated("updatedReplicas", s.UpdatedReplicas, s.Replicas)
}

// Progress says how far a rollout is.
func (o *Object) Progress() string {
	if o.Kind == "DaemonSet" {
		return fmt.Sprintf("%d of %d Pods updated, %d available", o.Status.UpdatedNumberScheduled, o.Status.DesiredNumberScheduled, o.Status.NumberAvailable)
	}
	return fmt.Sprintf("%d of %d Pods updated, %d ready", o.Status.UpdatedReplicas, o.Replicas(), o.Status.ReadyReplicas)
}

// Outdated reports whether a Pod is not of the newest revision of the StatefulSet or DaemonSet that
// controls it.
func (o *Object) Outdated(pod *Object) bool {
	its, newest := o.Revisions(pod)
	return o.Kind != "ReplicaSet" && (its == "" || its != newest)
}

// Revisions returns the revision of a Pod, and the newest one of the StatefulSet or DaemonSet that
// controls it; "" if the label or the status has none.
func (o *Object) Revisions(pod *Object) (its, newest string) {
	if o.Kind == "DaemonSet" {
		return pod.Metadata.Labels["pod-template-generation"], o.Metadata.Annotations["deprecated.daemonset.template.generation"]
	}
	return pod.Metadata.Labels["controller-revision-hash"], o.Status.UpdateRevision
}

// Wanted reports whether a workload should have Pods.
func (o *Object) Wanted() bool {
	_, want := o.Ready()
	return want > 0
}

// Enough reports whether a number of ready Pods is all that a workload wants, and that it wants some.
func (o *Object) Enough(ready int) bool {
	_, want := o.Ready()
	return want > 0 && int64(ready) >= want
}

// Scale returns how many Pods a workload should have, and how many exist and are ready; nil for what
// has no number of replicas.
func (o *Object) Scale() (want *int64, exist, ready int64) {
	if o.Kind == "DaemonSet" {
		return &o.Status.DesiredNumberScheduled, o.Status.DesiredNumberScheduled, o.Status.NumberReady
	}
	return o.Spec.Replicas, o.Status.Replicas, o.Status.ReadyReplicas
}

// Lacks reports whether a controller has fewer Pods than it should; a Job, none.
func (o *Object) Lacks() bool {
	exist, want, ok := o.Pods()
	return ok && exist < want && (exist == 0 || o.Kind != "Job")
}

// Selects reports whether the selector of an object selects another one of its namespace.
func (o *Object) Selects(other *Object) bool {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(other.Metadata.Labels))
}

// UsesMore reports whether more of a ResourceQuota is used than before.
func (o *Object) UsesMore(before *Object) bool {
	for name, used := range o.Status.Used {
		if was, ok := before.Status.Used[name]; ok && used.Cmp(was) > 0 {
			return true
		}
	}
	return false
}
