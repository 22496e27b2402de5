// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/change"
	"github.com/watchkeeper/watchkeeper/internal/words"
)

// cordons describes the times in which a Node was cordoned, or had a NoExecute taint, and the Pods that
// were evicted from it meanwhile. It was drained if no other is left; only its own story has all its Pods.
func (t *teller) cordons(node *thing, taint string) {
	is, reason, set, unset := func(s *state) bool { return s.look().Spec.Unschedulable }, "EvictionByEvictionAPI", "cordoned", "uncordoned"
	field, value, how := "spec.unschedulable", "true", disruptedBy[reason]
	if taint != "" {
		is, reason, set, unset = func(s *state) bool { return slices.Contains(s.look().NoExecute(), taint) }, "DeletionByTaintManager", "tainted "+taint, "taint removed"
		field, value, how = "spec.taints", taint, "evicted"
	}
	for _, span := range t.spans(node, is) {
		if !t.concerns(node, span.from, span.to) {
			continue
		}
		ep := newEpisode(rankNode, api.EpisodeInfo, span.from, span.to, span.open)
		ep.claims, ep.said = span.claims, span.first.since(field, value)
		var pods, left, budgets []*thing
		var hits []hit
		var waiting []*state
		remain := 0
		for _, pod := range t.podsOn(node.key.Name(), ep.From, ep.To) {
			end := stays(pod, node, ep.From, ep.To)
			if c, d := t.disruption(pod); d != nil && c.Reason == reason && within(d.at, ep.From, ep.To) {
				pods, hits = append(pods, pod), append(hits, hit{pod, d, c})
				ep.hit(hits[len(hits)-1])
				ep.workloads = append(ep.workloads, t.workload(pod))
				remain += one(end != nil)
			} else if end != nil && taint == "" { // else it tolerates that
				left = append(left, pod)
				if !end.terminating() {
					waiting = append(waiting, end)
				}
			}
		}
		ep.Title = fmt.Sprintf("Node %s %s%s", node.key.Name(), set, span.first.entry.by())
		if len(pods) > 0 {
			ep.Severity = api.EpisodeWarning
			if len(left)+remain == 0 && t.isOwn(node) && taint == "" {
				ep.Title = fmt.Sprintf("Node %s drained: cordoned%s", node.key.Name(), span.first.entry.by())
			}
			ep.Title += fmt.Sprintf(", %s %s%s", t.counted(pods), how, t.stillTerminating(pods, span.open))
			if len(left) > 0 {
				ep.Title += fmt.Sprintf(", %s still on it", t.counted(left))
			}
			budgets = t.budgets(ep, hits, waiting)
		}
		if span.after != nil {
			ep.Title += "; " + unset + span.after.entry.by() + " after " + t.took(ep.From, ep.To)
		}
		ep.covers = func(e *entry) bool {
			return e.thing == node || slices.Contains(pods, e.thing) || e.event == nil && slices.Contains(budgets, e.thing)
		}
		t.add(ep)
	}
}

// stays returns the state of a Pod at the end of a time, if it was on a Node from the begin of that
// time, and a drain would evict it. One that went in a gap is not known to stay.
func stays(pod, node *thing, from, to time.Time) *state {
	begin, end := pod.at(from), pod.at(to)
	if begin == nil || end == nil || begin.asPod().Spec.NodeName != node.key.Name() || pod.last != nil && !pod.last.NotBefore.IsZero() && !pod.last.NotBefore.After(to) {
		return nil
	}
	c, p := pod.controller(), end.asPod()
	if c != nil && c.Kind == "DaemonSet" || p.Annotations[corev1.MirrorPodAnnotationKey] != "" || change.Ended(end.asPod()) {
		return nil
	}
	return end
}

// budgets says for how long PodDisruptionBudgets allowed no disruption of some Pods before the
// last of these was evicted, or while one of them waited, and with which numbers. It returns the
// budgets that are about these Pods.
func (t *teller) budgets(ep *episode, evicted []hit, waiting []*state) (all []*thing) {
	for _, pdb := range t.ofKind("PodDisruptionBudget") {
		selector, err := metav1.LabelSelectorAsSelector(pdb.final().look().Spec.Selector)
		selected := func(s *state) bool {
			return err == nil && s.thing.key.Namespace() == pdb.key.Namespace() && selector.Matches(labels.Set(s.look().Metadata.Labels))
		}
		last, format := time.Time{}, "; before the last of these evictions, %s allowed none for %s (healthy: %d, needed: %d)"
		for _, h := range evicted {
			if h.state.at.After(last) && selected(h.state) {
				last = h.state.at
			}
		}
		if slices.ContainsFunc(waiting, selected) {
			last, format = ep.To, "; %s allowed no disruption for %s (healthy: %d, needed: %d)"
		}
		if last.IsZero() {
			continue
		}
		all = append(all, pdb)
		var refused time.Duration
		var lowest *state
		for _, span := range t.spansOf(pdb, "DisruptionAllowed", "False") {
			from, to := span.from, span.to
			if from.Before(ep.From) {
				from = ep.From
			}
			if to.After(last) {
				to = last
			}
			if to.Sub(from) < time.Second { // the eviction itself has used what was allowed
				continue
			}
			refused += to.Truncate(time.Second).Sub(from.Truncate(time.Second))
			for _, s := range pdb.states {
				if s == pdb.at(from) || !s.at.Before(from) && s.at.Before(to) {
					if lowest == nil || s.look().Status.CurrentHealthy < lowest.look().Status.CurrentHealthy {
						lowest = s
					}
				}
			}
			ep.claims = append(ep.claims, span.claims...)
			c := span.cause()
			if lowest != nil {
				c.Text += fmt.Sprintf(", currentHealthy: %d, desiredHealthy: %d", lowest.look().Status.CurrentHealthy, lowest.look().Status.DesiredHealthy)
			}
			ep.said = addCause(ep.said, c)
		}
		if lowest != nil {
			l := lowest.look().Status
			ep.Title += fmt.Sprintf(format, t.called(pdb), words.Duration(refused), l.CurrentHealthy, l.DesiredHealthy)
		}
	}
	return all
}
