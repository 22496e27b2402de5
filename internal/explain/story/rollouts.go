// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/edges"
)

// A rollout is a change of a workload's Pod template, and what follows from it until the next one.
type rollout struct {
	workload *thing
	from, to time.Time // to is the next rollout, the deletion, or the end of the span
	entry    *entry    // of the change; nil if it was in progress when the span begins
	edits    []*entry  // of changes before that one, which the controller has not seen; never of the creation
	acted    bool      // the controller has seen the change
	begin    int       // index of the state
	end      int       // index after the last state
	proof    []said    // without an entry, what says that it was in progress
	before   *corev1.PodTemplateSpec
	after    *corev1.PodTemplateSpec
	done     time.Time // when all Pods were replaced and available; zero if they were not
	sets     []*thing  // the ReplicaSets with its template
	revision string
	back     bool       // to a template that it had
	undone   bool       // replaced before it was complete
	zero     *state     // since when no Pod is wanted, of which some were; nil if some are
	failed   bool       // and its Pods had not recovered when it was replaced
	waits    []*rollout // that failed before, one after the other
	ep       *episode

	recovered bool // its Pods failed, but it was complete, and they had recovered
	stopped   bool // or they were deleted as it was scaled to zero
}

// maxSettle is how long after a rollout was complete a failure of its Pods is one of the rollout:
// a container without a readiness probe that ends at once is ready for a moment. It is the first
// pause of the kubelet before it starts such a container again.
const maxSettle = 10 * time.Second

const revisionAnnotation = "deployment.kubernetes.io/revision"

// rollouts describes the rollouts of all workloads.
func (t *teller) rollouts() {
	for _, th := range t.ofKind("Deployment", "StatefulSet", "DaemonSet") {
		all := rolloutsOf(th, t)
		t.rolled[th] = all
		var before *rollout
		for _, r := range all {
			if r.done.IsZero() && r.zero != nil {
				r.to = r.zero.at
			}
			r.sets = t.replicaSets(th, r.after)
			t.tellRollout(r, before)
			before = r
		}
	}
}

// rolloutsOf returns the rollouts of a workload, in order.
func rolloutsOf(th *thing, t *teller) (all []*rollout) {
	var runs *corev1.PodTemplateSpec        // the newest template that its controller may act on
	var templates []*corev1.PodTemplateSpec // that it has had
	end := t.To
	if !th.gone.IsZero() {
		end = th.gone
	}
	var open *rollout
	for i, s := range th.states {
		template := s.look().PodTemplate()
		field, text, proven := s.look().Rolling()
		switch {
		case template == nil, s.look().Spec.Paused && runs != nil: // what is changed meanwhile waits
		case s.initial && s.look().Spec.Paused && t.replicaSets(th, template) == nil:
			runs = &corev1.PodTemplateSpec{} // another one, which is not known
		case s.initial && !proven:
			templates, runs = append(templates, template), template
		case runs == nil || !reflect.DeepEqual(runs, template) || i > 0 && s.look().Reaches(th.states[i-1].look()):
			if open != nil && open.before != nil && !open.acted && t.replicaSets(th, open.after) == nil { // changed twice before the controller looked
				open.edits, open.entry, open.after, open.begin = append(open.edits, open.entry), s.entry, template, i
			} else {
				if open != nil {
					open.to, open.end = s.at, i
				}
				r := &rollout{workload: th, from: s.at, to: end, entry: s.entry, begin: i, end: len(th.states), before: runs, after: template}
				if s.initial {
					r.before, r.proof = template, addCause(nil, s.cause(field, text)) // what was before is not known
				}
				if runs != nil && !reflect.DeepEqual(runs, template) && (slices.ContainsFunc(templates, func(other *corev1.PodTemplateSpec) bool { return reflect.DeepEqual(template, other) }) || t.hadTemplate(r)) {
					r.back = true
				}
				all, open = append(all, r), r
			}
			templates, runs = append(templates, template), template
		}
		if open != nil {
			observed := s.look().Status.ObservedGeneration >= generationOf(th, open.begin)
			open.acted = open.acted || observed
			if s.look().Wanted() {
				open.zero = nil
			} else if i > open.begin && th.states[i-1].look().Wanted() {
				open.zero = s
			}
			if open.done.IsZero() && observed && s.look().Complete() && open.zero == nil {
				open.done = s.at
			}
			rev, same := s.look().Metadata.Annotations[revisionAnnotation], reflect.DeepEqual(template, open.after) // while paused, it may have another
			if rev != "" && same && (i > open.begin || s.initial || observed) {
				open.revision = rev
			}
		}
	}
	return all
}

func generationOf(th *thing, i int) int64 { return th.states[i].look().Metadata.Generation }

// hadTemplate reports whether a Deployment had a ReplicaSet with the template of a rollout before it: the Deployment
// controller compares them in the same way. It creates one only after the change, which is the state's
// resourceVersion unless that was found by a list; then the ReplicaSet that is replaced has to be newer.
func (t *teller) hadTemplate(r *rollout) bool {
	s := r.workload.states[r.begin]
	_, found := t.edges[s.at.UnixNano()]
	return slices.ContainsFunc(t.replicaSets(r.workload, r.after), func(rs *thing) bool {
		if !found {
			return rs.states[0].o.RV < s.o.RV
		}
		return slices.ContainsFunc(t.replicaSets(r.workload, r.before), func(replaced *thing) bool {
			return rs.final().look().Metadata.CreationTimestamp.Before(&replaced.final().look().Metadata.CreationTimestamp)
		})
	})
}

// replicaSets returns the ReplicaSets of a Deployment with a template.
func (t *teller) replicaSets(th *thing, template *corev1.PodTemplateSpec) (all []*thing) {
	for _, rs := range t.ofKind("ReplicaSet") {
		its := rs.states[0].look().PodTemplate()
		if its == nil || !rs.controlledBy(th.uid) {
			continue
		}
		delete(its.Labels, "pod-template-hash")
		if reflect.DeepEqual(its, template) {
			all = append(all, rs)
		}
	}
	return all
}

// has reports whether a Pod is of a rollout's revision. known is false if no label or status says it.
func (r *rollout) has(pod *thing) (is, known bool) {
	if slices.ContainsFunc(r.sets, func(rs *thing) bool { return pod.controlledBy(rs.uid) }) {
		return true, true
	}
	for _, s := range r.workload.states[r.begin:r.end] {
		its, newest := s.look().Revisions(pod.final().look())
		if its != "" && newest != "" && s.look().Status.ObservedGeneration >= generationOf(r.workload, r.begin) {
			return its == newest && pod.controlledBy(r.workload.uid), true
		}
	}
	return pod.controlledBy(r.workload.uid), false
}

// failuresOf returns the failures of a rollout's own Pods, or those that are weak: that Pods are not ready.
func (t *teller) failuresOf(r *rollout, weak bool) (all []*failure) {
	first, limit := r.workload.states[r.begin], r.to
	if !r.done.IsZero() && r.done.Add(maxSettle).Before(limit) {
		limit = r.done.Add(maxSettle)
	}
	for _, f := range t.failures {
		is, known := r.has(f.pod)
		before := func(s *state) bool { // the next rollout, whose revision may be the same
			if r.end == len(r.workload.states) {
				return !s.at.After(r.to)
			}
			order := t.order(s, r.workload.states[r.end])
			return order < 0 || order == 0 && known
		}
		late, created := f.from.After(limit), f.pod.states[0]
		if r.end < len(r.workload.states) && limit.Equal(r.workload.states[r.end].at) {
			late = late && !before(f.first)
		}
		switch {
		case f.described, !is, (f.fault.Weight < 2) != weak, late, t.order(f.first, first) < 0, !before(created):
			continue
		case r.sets == nil && (created.initial || t.order(created, first) < 0): // of a StatefulSet or DaemonSet
			continue
		}
		all = append(all, f)
		if next := f.to.Add(maxApart); next.After(limit) && !passingFault(f) { // it fails again and again
			limit = next
		}
	}
	return all
}

// tellRollout adds the episode of a rollout. A rollback belongs to the episode of what it undoes if that had failed.
func (t *teller) tellRollout(r, before *rollout) {
	th := r.workload
	failures := t.failuresOf(r, false)
	ep := newEpisode(rankRollout, api.EpisodeInfo, r.from, r.to, false)
	r.ep, ep.said = ep, r.proof
	ep.workloads = []name{th.named()}
	ep.claims = append(ep.claims, r.edits...)
	if r.entry != nil {
		ep.claims = append(ep.claims, r.entry)
	}
	done, over, complete := !r.done.IsZero(), r.to.Before(t.To), ""
	if done {
		complete = "complete after " + t.took(r.from, r.done)
	}
	blocked, reasons := t.stuck(r)
	bad := slices.DeleteFunc(slices.Clone(failures), passingFault) // its Pods may only take a while to start
	var unready []*failure                                         // until it was replaced
	if over && !done {
		unready = slices.DeleteFunc(t.failuresOf(r, true), func(f *failure) bool { return f.to.Sub(f.from) <= maxStart || passingFault(f) })
	}
	last := th.states[r.end-1]
	ep.Title = t.describe(r)
	switch {
	case len(bad) > 0:
		ep.Severity = api.EpisodeFailed
		ep.said, ep.still = t.causes(bad), stillOf(bad)
		n, verb := t.changes(&group{all: bad, from: r.from, to: r.to, first: th.states[r.begin]}), " failed: "
		ep.before = n.tellBefore(ep)
		if done && !bad[0].from.Before(r.done) { // what was changed meanwhile is told from then
			n = t.changes(&group{all: bad, from: bad[0].from, to: r.to, first: bad[0].first})
			n.before = slices.DeleteFunc(n.before, func(one noted) bool { return !one.entry.Time.After(r.from) })
			verb = ", " + complete + ", then failed " + t.took(r.done, bad[0].from) + " later"
			if text := n.tellBefore(ep); text != "" {
				verb += ", " + text
			}
			verb += ": "
		}
		ep.Title += verb + summary(bad)
		n.tellDuring(ep)
		passed := !slices.ContainsFunc(bad, func(f *failure) bool {
			if f.after != nil && r.end < len(th.states) {
				return t.order(f.after, th.states[r.end]) >= 0
			}
			begin, _, _ := t.edges.Bounds(r.to)
			return !f.ended || f.to.After(begin)
		})
		recovered, deleted := ends(bad)
		ended := passed && (done || deleted == 0 && recovered > 0)
		r.failed, r.recovered, ep.Ongoing = !ended, ended && done, !over && !(ended && done)
		if last := lastEnd(bad, r.done); ended && deleted > 0 {
			ep.To, ep.Title = last, ep.Title+untilDeleted(recovered, deleted)
			r.stopped = recovered == 0 && r.zero != nil && within(r.zero.at, r.from, last)
		} else if ended {
			switch ep.Title += ", recovered after " + t.took(r.from, last); {
			case done:
				ep.To = last
			case over:
				ep.Title, r.undone = ep.Title+", did not complete", r.zero == nil
			default:
				ep.still = "not complete"
			}
		}
		r.describes(failures)
		reasons = slices.DeleteFunc(reasons, func(r string) bool { return strings.HasPrefix(r, "ProgressDeadlineExceeded") })
		if len(reasons) > 0 {
			ep.Title += "; " + strings.Join(reasons, "; ")
		}
	case len(reasons) > 0:
		ep.Severity, ep.Ongoing, r.failed = api.EpisodeFailed, !done && !over, !done
		end, verb := r.to, " failed: "
		if done {
			end, verb = r.done, " was blocked: "
		}
		ep.Title += verb + reasons[len(reasons)-1]
		n := t.quotaChanges(strings.Join(reasons, " "), r.from, end)
		n.tell(ep)
		ep.covers = func(e *entry) bool { return e.Kind == "ResourceQuota" && e.counters }
		if ep.To = end; done {
			ep.Title += "; " + complete
		}
	case done:
		ep.To = r.done
		ep.Title += ", " + complete
	case last.look().OnDelete() && r.before != nil && r.zero == nil && len(unready) == 0:
		ep.Ongoing = !over
		ep.Title += ", takes effect as its Pods are deleted (OnDelete): " + last.look().Progress()
	case over && r.zero != nil && th.kind == "DaemonSet": // that is what it was to do
	case over:
		r.undone = r.zero == nil
		if ep.Title += " did not complete"; len(unready) > 0 {
			ep.Severity, ep.said = api.EpisodeWarning, t.causes(unready)
			ep.Title += ": " + summary(unready)
			r.describes(unready)
		} else if worst, text := t.down(r); text != "" && r.undone {
			ep.Severity, ep.said = api.EpisodeWarning, addCause(nil, worst)
			ep.Title += text
		}
	case last.look().Status.ObservedGeneration < generationOf(th, r.begin):
		ep.Ongoing = true
		ep.Title += " requested"
	case last.look().Spec.Paused:
		ep.Ongoing = true
		ep.Title += ", paused: " + last.look().Progress()
	default:
		ep.Ongoing = true
		ep.Title += ", in progress: " + last.look().Progress()
	}
	if (!done || r.stopped) && r.zero != nil {
		ep.atZero = r.end == len(th.states) && th.gone.IsZero()
		if ep.Title += "; scaled to 0"; th.kind != "DaemonSet" {
			ep.Title += r.zero.entry.by()
		}
		ep.Title += " after " + t.took(r.from, r.zero.at)
	}
	for _, c := range blocked {
		ep.said = addCause(ep.said, c.Cause)
	}
	if before == nil || !t.replaces(r, before, complete) {
		t.add(ep)
	}
}

// describes makes failures a part of the episode of a rollout.
func (r *rollout) describes(failures []*failure) {
	for _, f := range failures {
		f.described = f.to.Sub(r.to) < maxTrail // of a StatefulSet, or with OnDelete, the next rollout does not end it
		for _, e := range f.claims {
			if f.described || e.Time.Before(r.to) {
				r.ep.claims = append(r.ep.claims, e)
			}
		}
	}
}

// replaces ends the episode of the rollout before, if that had failed or was not complete. It
// reports whether a rollback is a part of it.
func (t *teller) replaces(r, before *rollout, complete string) bool {
	prev := before.ep
	failed := before.failed && (prev.Ongoing || !prev.To.Before(r.from)) || before.stopped
	if !failed && !before.undone {
		return false
	}
	verb, by, which := "replaced by the next rollout", r.entry.by(), ", which was "
	if r.revision != "" {
		verb = "replaced by revision " + r.revision
	}
	if r.back {
		verb, which = "rolled back", ", "
		if what := change.Images(before.after, r.after); what != "" {
			verb += " to " + what
		}
	} else if by != "" {
		by = " (" + by[1:] + ")"
	}
	too := map[bool]string{true: ", too"}[prev.Severity == api.EpisodeFailed]
	switch verb += by; {
	case r.failed:
		verb += ", which failed" + too
	case r.recovered:
		verb += ", which failed" + too + ", and recovered"
	case r.done.IsZero() && (r.undone || r.zero != nil):
		verb += ", which did not complete"
	case complete != "":
		verb += which + complete
	}
	prev.Title += "; " + verb
	if r.failed || r.done.IsZero() {
		r.waits = append(before.waits, before)
	} else {
		for _, one := range before.waits {
			one.ep.Title += "; then " + verb
		}
	}
	prev.replaced, prev.Ongoing, prev.To = true, false, r.from
	if !failed || !r.back || r.undone || r.ep.Severity == api.EpisodeFailed {
		return false
	}
	prev.claims = append(prev.claims, r.ep.claims...)
	prev.To, prev.Ongoing = r.ep.To, complete == "" && r.ep.Ongoing
	prev.still = "the rollback is not complete"
	return true
}

// passingFault reports whether a failure may be only that its Pod took a while to start.
func passingFault(f *failure) bool {
	return f.ended && f.end != "deleted" && (f.fault.Class == change.Unschedulable || f.fault.Class == change.NotReady || f.fault.cause.Field == "Event")
}

func lastEnd(all []*failure, at time.Time) time.Time {
	for _, f := range all {
		at = edges.Later(at, f.to)
	}
	return at
}
