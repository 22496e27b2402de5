// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package workload reads what the objects of workloads say of their Pods: how many there are and
// should be, how many are ready, and how far a rollout is.
//
// It knows what the controllers of kube-controller-manager 1.37 make of a workload's spec, and where
// its status says so (pkg/controller/deployment/progress.go and sync.go, statefulset/
// stateful_set_utils.go, daemon/update.go):
//
//	Deployment   Progressing is NewReplicaSetAvailable from when a rollout is complete until the
//	             template changes again: Pods that fail, scaling and a quota do not change it.
//	             Without progressDeadlineSeconds there is no such condition.
//	             spec.paused: the template is not acted on, and nothing times out; it is scaled.
//	             Recreate: all old Pods end before the first new one is created.
//	StatefulSet  currentRevision becomes updateRevision when all Pods are updated and ready;
//	             not with a partition: those below it keep the old revision.
//	             OnDelete: a Pod is updated when somebody deletes it.
//	DaemonSet    updatedNumberScheduled counts Pods of the newest template, currentNumberScheduled
//	             all that are on the right Nodes. OnDelete as above.
//
// An [Object] is read-only once it is read, and many goroutines may use it.
package workload
