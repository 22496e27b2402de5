// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/edges"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// describe names a rollout: what it changes, its revision, and by whom.
func (t *teller) describe(r *rollout) string {
	th := r.workload
	what, to := "rollout of "+th.key.Name(), " to "
	switch {
	case r.back && r.entry != nil && slices.Contains(r.entry.By, "kubectl-rollout"):
		what = "rollback of " + th.key.Name()
	case r.back: // which may have failed before
		to = " again to "
	}
	var details []string
	switch {
	case r.before == nil:
		what = th.kind + " " + th.key.Name() + " created"
		if images := change.Images(nil, r.after); images != "" {
			what += " with " + images
		}
	case r.entry == nil:
		what += to + change.Images(nil, r.after)
	default:
		if images := change.Images(r.before, r.after); images != "" {
			if old := change.Images(r.after, r.before); !strings.Contains(images+old, ", ") && old != "" {
				what += " from " + old
			}
			what += to + images
		} else if change.Restarted(r.before, r.after) {
			what = "restart of " + th.key.Name()
		} else if len(r.entry.What) > 0 {
			if to != " to " {
				what += " back to an earlier template"
			}
			details = append(details, change.Brief(strings.Join(change.Shortened(r.entry.What), ", ")))
		}
	}
	if r.revision != "" {
		details = append(details, "revision "+r.revision)
	}
	if p := th.states[r.begin].look().Partition(); p > 0 {
		details = append(details, fmt.Sprintf("partition %d", p))
	}
	if text := r.with(details...); text != "" {
		what += " (" + text + ")"
	}
	return what
}

// with joins texts and the authors of a rollout, for parentheses.
func (r *rollout) with(texts ...string) string {
	all := &entry{}
	for _, e := range append(slices.Clone(r.edits), r.entry) {
		if e != nil {
			all.join(e)
		}
	}
	return all.with(texts...)
}

// rolloutAt names the rollout of a workload during which a failure ended, "" if there was none.
func (t *teller) rolloutAt(wl name, at time.Time) string {
	for _, r := range slices.Backward(t.rolled[t.byUID[wl.uid]]) {
		end := r.to
		if !r.done.IsZero() {
			end = r.done.Add(maxTrail)
		}
		begin, _, _ := t.edges.Bounds(r.from) // its Pods may be seen before it, in the same gap
		if r.entry != nil && r.before != nil && within(at, begin, end) {
			return "the " + t.describe(r)
		}
	}
	return ""
}

// addRollout notes the rollout that failed Pods are of, if it was shortly before.
func (t *teller) addRollout(n *notes, g *group) {
	th := t.byUID[g.all[0].workload.uid]
	for _, r := range slices.Backward(t.rolled[th]) {
		begin := th.states[r.begin]
		if r.entry != nil && r.before != nil && g.from.Sub(r.from) <= maxConfig && slices.ContainsFunc(g.all, func(f *failure) bool {
			is, _ := r.has(f.pod)
			return is && !f.pod.states[0].initial && t.order(f.pod.states[0], begin) >= 0
		}) {
			n.addOne(t.called(th), r.entry, g.from, "", true)
			return
		}
	}
}

// stuck says why a rollout could not go on, as far as conditions of the workload or its ReplicaSets say so: at its
// end, if it was not completed. What they say of Pods after all of its own were created is something else.
func (t *teller) stuck(r *rollout) (all []said, reasons []string) {
	done, end := !r.done.IsZero(), r.to
	if done {
		end = r.done
	}
	add := func(s *state, c condition) {
		all = addCause(all, s.because(c))
		reasons = words.AppendOnce(reasons, change.Brief(change.Because(c.Reason, change.Unnamed(c.Message))))
	}
	var observed []*state
	var created time.Time // when all of its Pods were
	for _, s := range r.workload.states[r.begin:r.end] {
		if l := s.look(); l.Status.ObservedGeneration >= generationOf(r.workload, r.begin) && (s.at.Before(end) || end.Equal(t.To)) {
			if observed = append(observed, s); created.IsZero() && l.Status.UpdatedReplicas >= l.Replicas() {
				created = s.at
			}
		}
	}
	for i, s := range observed {
		if c, _ := s.condition("Progressing"); c.Status == "False" && c.Reason == "ProgressDeadlineExceeded" && (done || i == len(observed)-1) {
			add(s, c)
		}
	}
	for _, rs := range r.sets {
		for _, span := range t.spansOf(rs, "ReplicaFailure", "True") {
			early := span.from.Before(end) && (created.IsZero() || span.from.Before(created))
			if early && span.to.After(r.from) && (done || !span.to.Before(end)) {
				add(span.last, span.condition)
			}
		}
	}
	return all, reasons
}

// down says how many Pods were ready at worst in a time in which a rollout that was not completed had too
// few, and how long that was; "" if it was not longer than Pods need to start, or if none was left, than
// maxSettle: then there were no others for which they could be replaced slowly.
func (t *teller) down(r *rollout) (worst api.Cause, text string) {
	for _, span := range t.spans(r.workload, short) {
		to, limit := edges.Earlier(span.to, r.to), maxStart
		lowest := r.workload.lowest(span.from, to, short)
		if lowest != nil && lowest.look().ReadyPods() == 0 {
			limit = maxSettle
		}
		if span.from.After(r.from) && to.Sub(span.from) > limit {
			worst = lowest.cause(lowest.look().Readiness())
			return worst, ": " + worst.Text + " ready for " + t.took(span.from, to)
		}
	}
	return worst, ""
}
