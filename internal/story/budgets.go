// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budgets tells for how long PodDisruptionBudgets allowed no disruption of some Pods before the
// last of these was evicted, and with which numbers. It returns the budgets that are about
// these Pods.
func (t *teller) budgets(ep *episode, evicted []hit) (all []*thing) {
	for _, pdb := range t.ofKind("PodDisruptionBudget") {
		last, ok := lastOf(pdb, evicted)
		if !ok {
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
			if !from.Before(to) {
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
			c := span.cause(pdb)
			if lowest != nil {
				c.Text += fmt.Sprintf(", currentHealthy: %d, desiredHealthy: %d", lowest.look().Status.CurrentHealthy, lowest.look().Status.DesiredHealthy)
			}
			ep.said = addCause(ep.said, c)
		}
		if lowest != nil && refused >= time.Second {
			l := lowest.look().Status
			ep.Title += fmt.Sprintf("; before the last of these evictions, %s allowed none for %s (healthy: %d, needed: %d)", t.called(pdb), lasted(refused), l.CurrentHealthy, l.DesiredHealthy)
		}
	}
	return all
}

// lastOf returns when the last one of the Pods that a PodDisruptionBudget selects was evicted.
func lastOf(pdb *thing, evicted []hit) (last time.Time, ok bool) {
	selector, err := metav1.LabelSelectorAsSelector(pdb.final().look().Spec.Selector)
	if err != nil {
		return last, false
	}
	for _, h := range evicted {
		if h.pod.key.Namespace() == pdb.key.Namespace() && selector.Matches(labels.Set(h.state.look().Metadata.Labels)) {
			ok = true
			if h.state.at.After(last) {
				last = h.state.at
			}
		}
	}
	return last, ok
}
