// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/change"
)

// What the controllers of kube-controller-manager 1.37 make of a workload's spec, and where its
// status says so (pkg/controller/deployment/progress.go and sync.go, statefulset/
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

// rolling reports whether a state proves that a rollout has begun and is not over, and what says
// so. That Pods are missing or not ready is no proof, and with OnDelete, currentRevision is none.
func rolling(s *state) (c api.Cause, proven bool) {
	l := s.look()
	st := l.Status
	updated := func(field string, n, of int64) (api.Cause, bool) {
		return s.cause("status."+field, fmt.Sprintf("%d of %d", n, of)), n < of
	}
	switch s.o.Kind {
	case "StatefulSet":
		if p := partition(l); p > 0 {
			return updated("updatedReplicas", st.UpdatedReplicas, replicas(l)-p)
		} else if onDelete(s) {
			return updated("updatedReplicas", st.UpdatedReplicas, st.Replicas)
		}
		return s.cause("status.updateRevision", fmt.Sprintf("%s, currentRevision: %s", st.UpdateRevision, st.CurrentRevision)), st.CurrentRevision != st.UpdateRevision
	case "DaemonSet":
		return updated("updatedNumberScheduled", st.UpdatedNumberScheduled, st.CurrentNumberScheduled)
	}
	switch c, _ := s.condition("Progressing"); c.Reason {
	case "NewReplicaSetAvailable":
		return api.Cause{}, false
	case "NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "ProgressDeadlineExceeded":
		return s.because(c), true
	}
	return updated("updatedReplicas", st.UpdatedReplicas, st.Replicas)
}

// onDelete reports whether Pods get the newest template only when somebody deletes them.
func onDelete(s *state) bool { return s.look().Spec.UpdateStrategy.Type == "OnDelete" }

// partition returns below which ordinal Pods keep what they run.
func partition(l *light) int64 {
	if l.Spec.UpdateStrategy.Type == "OnDelete" {
		return 0
	}
	return l.Spec.UpdateStrategy.RollingUpdate.Partition
}

// reaches reports whether a partition was lowered that keeps Pods from the newest revision.
func reaches(before, s *state) bool {
	l := s.look()
	return partition(l) < partition(before.look()) && l.Status.CurrentRevision != l.Status.UpdateRevision
}

// replicas returns how many Pods a workload should have.
func replicas(l *light) int64 {
	if l.Spec.Replicas == nil {
		return 1
	}
	return *l.Spec.Replicas
}

// complete reports whether a workload runs its newest template everywhere, as 'kubectl rollout
// status' does.
func complete(s *state) bool {
	l := s.look()
	st, want := l.Status, replicas(l)
	switch {
	case st.ObservedGeneration < l.Metadata.Generation:
		return false
	case s.o.Kind == "DaemonSet":
		return st.UpdatedNumberScheduled >= st.DesiredNumberScheduled && st.NumberAvailable >= st.DesiredNumberScheduled
	case s.o.Kind == "StatefulSet":
		return st.UpdatedReplicas >= max(want, st.Replicas)-partition(l) && st.ReadyReplicas >= want
	}
	return st.UpdatedReplicas >= want && st.Replicas <= st.UpdatedReplicas && st.AvailableReplicas >= st.UpdatedReplicas
}

// pauses describes the times in which a Deployment was paused, and what was changed meanwhile:
// that is rolled out when it is resumed.
func (t *teller) pauses() {
	paused := func(s *state) bool { return s.look().Spec.Paused }
	for _, th := range t.ofKind("Deployment") {
		for _, span := range t.spans(th, paused) {
			ep := newEpisode(rankConfig, api.EpisodeInfo, span.from, span.to, span.open)
			ep.Kind, ep.claims, ep.said = api.EpisodeRollout, span.claims, span.first.since("spec.paused", "true")
			ep.Title = fmt.Sprintf("rollouts of %s paused%s", th.key.Name(), span.first.entry.by())
			var edits []string
			for i, s := range th.states {
				if s != span.first && paused(s) && within(s.at, span.from, span.to) && s.entry != nil && !s.entry.onlyStatus && generationOf(th, i) != generationOf(th, i-1) {
					edits = append(edits, s.entry.with(change.Shortened(s.entry.What)...))
					ep.claims = append(ep.claims, s.entry)
				}
			}
			if edits != nil {
				ep.Title += "; changed meanwhile: " + change.Brief(strings.Join(edits, "; "))
			}
			switch {
			case span.after != nil:
				ep.Title += fmt.Sprintf("; resumed%s after %s", span.after.entry.by(), t.took(ep.From, ep.To))
			case !span.open:
				ep.Title += ", until deleted"
			case edits != nil:
				ep.Title += "; rolled out when it is resumed"
			}
			t.add(ep)
		}
	}
}
