// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/words"
)

// cordons describes the times in which a Node was cordoned, and the Pods that were evicted
// from it meanwhile: a drain.
func (t *teller) cordons(node *thing) {
	for _, span := range t.spans(node, func(s *state) bool { return s.look().Spec.Unschedulable }) {
		if !t.concerns(node, span.from, span.to) {
			continue
		}
		ep := newEpisode(rankNode, api.EpisodeInfo, span.from, span.to, span.open)
		ep.claims, ep.said = span.claims, span.first.since("spec.unschedulable", "true")
		var pods []*thing
		var hits []hit
		for _, pod := range t.podsOn(node.key.Name(), ep.From, ep.To) {
			if c, d := t.disruption(pod); d != nil && c.Reason == "EvictionByEvictionAPI" && within(d.at, ep.From, ep.To) {
				pods, hits = append(pods, pod), append(hits, hit{pod, d, c})
				ep.hit(hits[len(hits)-1])
				ep.workloads = append(ep.workloads, t.workload(pod))
			}
		}
		ep.Title = fmt.Sprintf("Node %s cordoned%s", node.key.Name(), span.first.entry.by())
		if len(pods) > 0 {
			ep.Severity = api.EpisodeWarning
			ep.Title = fmt.Sprintf("Node %s drained: cordoned%s, %s evicted by the eviction API", node.key.Name(), span.first.entry.by(), t.counted(pods))
		}
		budgets := t.budgets(ep, hits)
		if span.after != nil {
			ep.Title += "; uncordoned" + span.after.entry.by() + " after " + t.took(ep.From, ep.To)
		}
		ep.covers = func(e *entry) bool {
			return e.thing == node || slices.Contains(pods, e.thing) || e.event == nil && slices.Contains(budgets, e.thing)
		}
		t.add(ep)
	}
}

// budgets says for how long PodDisruptionBudgets allowed no disruption of some Pods before the
// last of these was evicted, and with which numbers. It returns the budgets that are about
// these Pods.
func (t *teller) budgets(ep *episode, evicted []hit) (all []*thing) {
	for _, pdb := range t.ofKind("PodDisruptionBudget") {
		last := lastOf(pdb, evicted)
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
			ep.Title += fmt.Sprintf("; before the last of these evictions, %s allowed none for %s (healthy: %d, needed: %d)", t.called(pdb), words.Duration(refused), l.CurrentHealthy, l.DesiredHealthy)
		}
	}
	return all
}

// lastOf returns when the last one of the Pods that a PodDisruptionBudget selects was evicted,
// zero if none was.
func lastOf(pdb *thing, evicted []hit) (last time.Time) {
	selector, err := metav1.LabelSelectorAsSelector(pdb.final().look().Spec.Selector)
	if err != nil {
		return last
	}
	for _, h := range evicted {
		if h.state.at.After(last) && h.pod.key.Namespace() == pdb.key.Namespace() && selector.Matches(labels.Set(h.state.look().Metadata.Labels)) {
			last = h.state.at
		}
	}
	return last
}
