// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/edges"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// A hit is a Pod that was disrupted. Of one that was only deleted, the condition is empty.
type hit struct {
	pod       *thing
	state     *state
	condition condition
}

// hit adds to an episode that a Pod was disrupted.
func (ep *episode) hit(h hit) {
	ep.claims = append(ep.claims, claim(h.state)...)
	if h.condition.Type != "" {
		ep.said = addCause(ep.said, h.state.because(h.condition))
	}
}

// disruptions describes Pods that were preempted, evicted, or deleted by another than their
// controller, unless a Node's episode does.
func (t *teller) disruptions() {
	type key struct {
		reason string
		of     name
	}
	groups := map[key][]hit{}
	var keys []key
	for _, pod := range t.ofKind("Pod") {
		c, s := t.disruption(pod)
		if s == nil {
			s = t.unasked(pod)
		}
		if s == nil || s.initial || s.entry == nil || t.claimed(s.entry, rankNode) {
			continue
		}
		key := key{c.Reason, t.workload(pod)}
		keys = words.AppendOnce(keys, key)
		groups[key] = append(groups[key], hit{pod, s, c})
	}
	for _, key := range keys {
		all := groups[key]
		slices.SortStableFunc(all, func(a, b hit) int { return a.state.at.Compare(b.state.at) })
		for _, run := range words.Runs(all, func(a, b hit) bool {
			pause := b.state.at.Sub(a.state.at) // evictions wait for each other
			return pause > maxApart || key.reason == "" && pause > maxTogether && t.recovered(key.of, a.state.at, b.state.at)
		}) {
			t.tellDisruption(run)
		}
	}
}

func (t *teller) tellDisruption(all []hit) {
	first := all[0]
	wl := t.workload(first.pod)
	ep := newEpisode(rankDisruption, api.EpisodeFailed, first.state.at, all[len(all)-1].state.at, false)
	deleted := first.condition.Type == ""
	if deleted || first.condition.Reason == "EvictionByEvictionAPI" {
		ep.Severity = api.EpisodeWarning
	}
	var pods []*thing
	var said []string
	for _, h := range all {
		pods = append(pods, h.pod)
		ep.hit(h)
		for _, ev := range t.eventsAbout(h.pod, h.state.at.Add(-maxTrail), h.state.at.Add(maxTrail), "Preempted", "Evicted", "TaintManagerEviction") {
			ep.claims = append(ep.claims, ev.entry)
			c := ev.cause()
			c.Text = t.withNames(c.Text)
			ep.said = addCause(ep.said, c)
			said = words.AppendOnce(said, t.withNames(ev.Text()))
		}
		if gone := h.pod.gone; gone.After(ep.To) && gone.Sub(h.state.at) <= maxApart {
			ep.To = gone
		}
	}
	how := cmp.Or(change.Disruptions[first.condition.Reason], "disrupted ("+first.condition.Reason+")")
	preempted := first.condition.Reason == "PreemptionByScheduler"
	if preempted {
		how = t.priorities(ep, []*thing{first.pod}) + how
	}
	ep.Title = fmt.Sprintf("%s: %s %s", t.calledName(wl), words.Count(len(byName(pods)), "Pod"), how)
	if wl.kind == "Pod" {
		ep.Title = fmt.Sprintf("%s %s", t.calledName(wl), how)
	}
	switch {
	case deleted:
		pods = append(pods, t.replaced(ep, pods)...)
	case preempted:
		t.preemption(ep, said)
		ep.Title += t.replacements(ep, wl)
	case change.Disruptions[first.condition.Reason] == "":
		ep.Title += ": " + change.Brief(first.condition.Message)
	case len(said) > 0:
		ep.Title += " (" + change.Brief(said[0]) + ")"
	}
	ep.workloads = []name{wl}
	ep.covers = func(e *entry) bool { return slices.Contains(pods, e.thing) }
	t.add(ep)
}

// withNames adds the names of objects to a text that has their UIDs.
func (t *teller) withNames(text string) string {
	for _, th := range t.things {
		if i := words.IndexWord(text, th.uid); i >= 0 && len(th.uid) >= 8 {
			return text[:i] + th.key.Namespace() + "/" + th.key.Name() + text[i+len(th.uid):]
		}
	}
	return text
}

// preemption says for which Pods others were preempted, with the priorities, and how the
// workload of these Pods was changed.
func (t *teller) preemption(ep *episode, said []string) {
	var preferred []*thing
	for _, th := range t.ofKind("Pod") {
		if slices.ContainsFunc(said, func(text string) bool { return words.IndexWord(text, th.key.Namespace()+"/"+th.key.Name()) >= 0 }) {
			preferred = append(preferred, th)
		}
	}
	switch {
	case len(preferred) > 0:
		wl := t.workload(preferred[0])
		ep.Title += " for " + strings.TrimSpace(t.counted(preferred)+" "+t.priorities(ep, preferred))
		n := notes{t: t}
		if th := t.byUID[wl.uid]; th != nil && th.kind != "Pod" {
			steps := t.steps(th)
			for _, e := range th.entries() {
				scaled := slices.ContainsFunc(steps, func(s step) bool { return s.state == e.state })
				if (scaled || e.Type == api.Added) && within(e.Time, ep.From.Add(-maxConfig), ep.To) {
					n.addOne(t.called(th), e, ep.From, "", true)
				}
			}
		}
		n.tell(ep)
	case len(said) > 0:
		ep.Title += " (" + change.Brief(words.List(said, 1, "Pod")) + ")"
	}
}

// priorities says which priority Pods have, if all have the same, and adds it as a cause.
func (t *teller) priorities(ep *episode, pods []*thing) string {
	priority := func(th *thing) *int32 { return th.final().asPod().Spec.Priority }
	first := priority(pods[0])
	if first == nil {
		return ""
	}
	ep.said = addCause(ep.said, pods[0].final().cause("spec.priority", fmt.Sprint(*first)))
	for _, th := range pods {
		if p := priority(th); p == nil || *p != *first {
			return ""
		}
	}
	return fmt.Sprintf("(priority %d) ", *first)
}

// replacements adds to an episode of preempted Pods those of their workload that were created
// then, and for which there was no Node.
func (t *teller) replacements(ep *episode, wl name) string {
	var found []*failure
	for _, f := range t.failures {
		if begin, created := f.pod.begin(); !f.described && f.workload == wl && f.fault.Class == change.Unschedulable && created && within(begin, ep.From, ep.To.Add(maxTrail)) {
			f.described = true
			found = append(found, f)
			ep.claims = append(ep.claims, f.claims...)
		}
	}
	if found == nil {
		return ""
	}
	for _, c := range t.causes(found) {
		ep.said = addCause(ep.said, c.Cause)
	}
	g := &group{all: found, from: ep.From, to: lastEnd(found, ep.To)}
	ep.To, ep.Ongoing = g.to, slices.ContainsFunc(found, func(f *failure) bool { return !f.ended })
	return "; of those created since then, " + summary(found) + t.ending(ep, g)
}

// cordons describes the times in which a Node was cordoned, or had a NoExecute taint, and the Pods that
// were evicted from it meanwhile. It was drained if no other is left; only its own story has all its Pods.
func (t *teller) cordons(node *thing, taint string) {
	is, reason, set, unset := func(s *state) bool { return s.look().Spec.Unschedulable }, "EvictionByEvictionAPI", "cordoned", "uncordoned"
	field, value, how := "spec.unschedulable", "true", change.Disruptions[reason]
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

// budgets says for how long PodDisruptionBudgets allowed no disruption of some Pods before the last of these was
// evicted, or while one of them waited, and with which numbers. It returns the budgets that are about these Pods.
func (t *teller) budgets(ep *episode, evicted []hit, waiting []*state) (all []*thing) {
	for _, pdb := range t.ofKind("PodDisruptionBudget") {
		selected := func(s *state) bool {
			return s.thing.key.Namespace() == pdb.key.Namespace() && pdb.final().look().Selects(s.look())
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
			from, to := edges.Later(span.from, ep.From), edges.Earlier(span.to, last)
			if to.Sub(from) < time.Second { // the eviction itself has used what was allowed
				continue
			}
			refused += to.Truncate(time.Second).Sub(from.Truncate(time.Second))
			for _, s := range pdb.states {
				if (s == pdb.at(from) || !s.at.Before(from) && s.at.Before(to)) && (lowest == nil || s.look().Status.CurrentHealthy < lowest.look().Status.CurrentHealthy) {
					lowest = s
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
