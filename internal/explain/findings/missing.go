// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/workload"
)

// An incomplete object is a controller of Pods that may want more of them than exist.
type incomplete struct {
	ref   Ref
	light *workload.Object
}

// addIncomplete adds a controller of Pods, unless its text shows that it has all of them, or has
// no status yet. The numbers of a spec are before those of its template, which may have anything.
// The status of a Deployment leaves out a number that is 0.
func (s *State) addIncomplete(r kube.Resource, o *scan.Object, exist, wanted string) {
	spec, status, ok := specAndStatus(o)
	if !ok {
		return
	}
	if r.Name == "daemonsets" {
		spec = status
	}
	n := number(status, exist)
	if r.Name == "deployments" && number(status, "observedGeneration") != "" {
		n = cmp.Or(n, "0")
	}
	if n != "" && n != number(spec, wanted) {
		s.incomplete = append(s.incomplete, &incomplete{Ref{Resource: r.GroupResource(), Kind: o.Kind, Key: o.Key}, workload.Read(o)})
	}
}

// addUnseen adds a workload whose last change its controller has not seen, by its text.
func (s *State) addUnseen(r kube.Resource, o *scan.Object) {
	i := max(strings.LastIndex(o.JSON, `"status":{`), 0)
	if number(o.JSON[:i], "generation") != number(o.JSON[i:], "observedGeneration") {
		s.unseen = append(s.unseen, &incomplete{Ref{Resource: r.GroupResource(), Kind: o.Kind, Key: o.Key}, workload.Read(o)})
	}
}

// written returns when an object was last written, by another subresource than one. A write of
// the subresource scale has no time: then it is when the version was observed, or the moment.
func (s *State) written(c *incomplete, except string) time.Time {
	written := c.light.Metadata.CreationTimestamp.Time
	for _, f := range c.light.Metadata.ManagedFields {
		at := s.at(c.ref.Resource)
		switch t, err := time.Parse(time.RFC3339, f.Time); {
		case f.Subresource == except && except != "":
			continue
		case err == nil:
			at = t
		case s.Observed != nil:
			at = cmp.Or(s.Observed(c.ref.Resource, c.ref.Key), at)
		}
		if at.After(written) {
			written = at
		}
	}
	return written
}

// controllers finds workloads whose controllers do not act: for a minute they have not seen the
// last change, or a Job or an autoscaler at all, or have created no Job that was due. What the
// status says is then that of before.
func (s *State) controllers(g *group) {
	for _, c := range s.unseen {
		m, observed := c.light.Metadata, c.light.Status.ObservedGeneration
		if observed >= m.Generation || m.DeletionTimestamp != nil {
			continue
		}
		changed := s.written(c, "status")
		if s.at(c.ref.Resource).Sub(changed) < minAge {
			continue
		}
		f := g.of(s.workload(c.ref, m.OwnerReferences), "", api.SeverityCritical)
		f.Objects = append(f.Objects, c.ref)
		f.from(changed)
		f.Title = fmt.Sprintf("its controller has not seen the last change: generation %d, observed %d", m.Generation, observed)
	}
	ignored := func(resource, kind string, o metav1.Object) {
		if created := o.GetCreationTimestamp().Time; o.GetDeletionTimestamp() == nil && !created.IsZero() && s.at(resource).Sub(created) >= minAge {
			ref := refOf(kind, o.GetNamespace(), o.GetName())
			f := g.of(s.workload(ref, o.GetOwnerReferences()), "", api.SeverityCritical)
			f.Objects = append(f.Objects, ref)
			f.from(created)
			f.Title = "its controller has not seen it"
		}
	}
	for _, job := range s.jobs {
		others := job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName
		if job.Status.StartTime == nil && len(job.Status.Conditions) == 0 && (job.Spec.Suspend == nil || !*job.Spec.Suspend) && !others {
			ignored("jobs.batch", "Job", job)
		}
	}
	for _, h := range s.autoscalers {
		if len(h.Status.Conditions) == 0 {
			ignored("horizontalpodautoscalers.autoscaling", "HorizontalPodAutoscaler", h)
		}
	}
	s.overdue(g)
}

// specAndStatus returns the texts of an object from its spec, and from its status on; ok is false
// without a status.
func specAndStatus(o *scan.Object) (spec, status string, ok bool) {
	i := strings.LastIndex(o.JSON, `"status":{`)
	if i < 0 {
		return "", "", false
	}
	_, spec, _ = strings.Cut(o.JSON[:i], `"spec":{`)
	return spec, o.JSON[i:], true
}

// number returns the digits of a member.
func number(text, member string) string {
	_, rest, _ := strings.Cut(text, `"`+member+`":`)
	return rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
}

// missing finds workloads of which Pods do not exist, although nothing refuses them. What other
// rules have found of their Pods says so in its title. Otherwise, it has to last for a minute: it
// does so at least since the last write. A StatefulSet makes no Pod before the others are available.
// With the strategy Recreate, a Deployment wants none of its ReplicaSets to have Pods before the old
// ones are gone: then it lacks them itself.
func (s *State) missing(g *group) {
	exist, wanted := map[Ref]int64{}, map[Ref]int64{}
	lacking := map[Ref][]*incomplete{}
	slices.SortFunc(s.incomplete, func(a, b *incomplete) int { return compareRefs(b.ref, a.ref) }) // ReplicaSets before Deployments
	for _, c := range s.incomplete {
		n, of, ok := c.light.Pods()
		if c.ref.Kind == "Deployment" {
			n, of, ok = c.light.Status.Replicas, c.light.Replicas(), c.light.Metadata.DeletionTimestamp == nil && lacking[c.ref] == nil
		}
		if !ok || n >= of {
			continue
		}
		workload := s.workload(c.ref, c.light.Metadata.OwnerReferences)
		exist[workload] += n
		wanted[workload] += of
		lacking[workload] = append(lacking[workload], c)
	}
	for workload, all := range lacking {
		text := fmt.Sprintf("%d of %d Pods exist", exist[workload], wanted[workload])
		if all[0].light.Spec.Paused {
			text += ": paused"
		}
		if g.said(workload, "; "+text) {
			continue
		}
		for _, c := range all {
			status, written := c.light.Status, s.written(c, "")
			if s.at(c.ref.Resource).Sub(written) < minAge || c.ref.Kind == "StatefulSet" && status.AvailableReplicas < status.Replicas {
				continue
			}
			f := g.of(workload, "", s.severity(workload))
			f.Objects = append(f.Objects, c.ref)
			f.from(written)
			f.Title = text
		}
	}
}

// said reports whether a finding says that Pods of a workload do not exist, and adds it to one
// about the others.
func (g *group) said(workload Ref, text string) bool {
	if slices.ContainsFunc(g.before, func(f *Finding) bool {
		return f.Subject == workload && (f.Rule == "create" || f.Rule == "rollout" || f.Rule == "vanished")
	}) {
		return true
	}
	f := g.ofPods(workload)
	if f != nil {
		f.Title += text
	}
	return f != nil
}

// ofPods returns what an earlier rule has found of the Pods or the controller of a workload; nil for
// nothing.
func (g *group) ofPods(workload Ref) *Finding {
	for _, f := range g.before {
		if f.Subject == workload && slices.Contains([]string{"crash", "image", "start", "creating", "create", "unscheduled", "not-ready", "pod-failed", "deletion", "controller", "vanished"}, f.Rule) {
			return f
		}
	}
	return nil
}
