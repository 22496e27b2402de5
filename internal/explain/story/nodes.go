// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// nodeConditions are conditions of Nodes that are bad if they are true, after the one that is good.
var nodeConditions = []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}

// nodeDown reports whether a Node is not Ready at any time in a span. The Node controller
// writes the Pods' condition a moment after the Node's.
func (t *teller) nodeDown(node string, from, to time.Time) bool {
	for _, th := range t.ofKind("Node") {
		if th.key.Name() == node && slices.ContainsFunc(t.spansOf(th, "Ready", "False", "Unknown"), func(s span) bool { return !s.from.After(to) && s.to.After(from) }) {
			return true
		}
	}
	return false
}

// nodes describes times in which Nodes were not ready, under pressure, cordoned, or tainted.
func (t *teller) nodes() {
	for _, node := range t.ofKind("Node") {
		for _, typ := range nodeConditions {
			bad, what, severity := []string{"True"}, "has "+typ, api.EpisodeWarning
			if typ == "Ready" {
				bad, what, severity = []string{"False", "Unknown"}, "NotReady", api.EpisodeFailed
			}
			for _, span := range t.spansOf(node, typ, bad...) {
				if t.concerns(node, span.from, span.to) {
					t.tellNode(node, span, what, severity)
				}
			}
		}
		taints := []string{""} // for none: it is cordoned
		for _, s := range node.states {
			taints = words.AppendOnce(taints, s.look().Taints()...)
		}
		for _, taint := range taints {
			t.cordons(node, taint)
		}
		if pods := t.podsLost(node); t.isOwn(node) && !node.gone.IsZero() || slices.ContainsFunc(pods, func(pod *thing) bool { return !t.strangers[pod] }) {
			ep := newEpisode(rankNode, api.EpisodeWarning, node.gone, node.gone, false)
			ep.Title, ep.claims, ep.own = fmt.Sprintf("Node %s deleted%s", node.key.Name(), t.again(node)), []*entry{node.last}, t.isOwn(node)
			if len(pods) > 0 {
				ep.Severity = api.EpisodeFailed
				ep.Title += "; on it " + t.counted(pods)
			}
			t.add(ep)
		}
	}
}

// podsLost returns the Pods that are known to have been on a Node as it was deleted: of what was created
// or deleted in the same gap, resourceVersions say it, unless a list found it.
func (t *teller) podsLost(node *thing) []*thing {
	e := node.last
	same := func(other *entry) bool {
		return other != nil && !e.NotBefore.IsZero() && !other.NotBefore.IsZero() && other.NotBefore.Before(e.Time) && e.NotBefore.Before(other.Time)
	}
	return slices.DeleteFunc(t.podsOn(node.key.Name(), node.gone, node.gone), func(pod *thing) bool {
		first, last := pod.states[0].entry, pod.last
		return same(first) && (first.Inferred || e.Inferred || first.rv > e.rv) || same(last) && (last.Inferred || last.rv < e.rv)
	})
}

// tellNode describes a Node that is not ready or under pressure, and the Pods on it.
func (t *teller) tellNode(node *thing, span span, state, severity string) {
	ep := newEpisode(rankNode, severity, span.from, span.to, span.open)
	ep.own, ep.claims, ep.said = t.isOwn(node), span.claims, addCause(nil, span.cause())
	title := fmt.Sprintf("Node %s %s (%s)", node.key.Name(), state, span.condition.Brief())
	reasons := []string{"DeletionByTaintManager", "DeletionByPodGC"}
	if state != "NotReady" {
		reasons = []string{"TerminationByKubelet"}
	}
	var pods, disrupted []*thing
	how := ""
	for _, pod := range t.podsOn(node.key.Name(), ep.From, ep.To) {
		pods = append(pods, pod)
		ep.workloads = append(ep.workloads, t.workload(pod))
		if c, s := t.disruption(pod); s != nil && slices.Contains(reasons, c.Reason) && within(s.at, ep.From, ep.To.Add(maxTrail)) {
			disrupted, how = append(disrupted, pod), change.Disruptions[c.Reason]
			if was := node.at(s.at); was != nil && c.Reason == "DeletionByTaintManager" && len(was.look().NoExecute()) == 1 {
				how = "evicted because of the taint " + was.look().NoExecute()[0]
			}
			ep.hit(hit{pod, s, c})
		}
		for i, s := range pod.states {
			if i > 0 && isReady(pod.states[i-1]) && !isReady(s) && !s.terminating() && within(s.at, ep.From, ep.To) && !slices.ContainsFunc(t.failures, func(f *failure) bool { return !f.described && slices.Contains(f.claims, s.entry) }) { // else its own failure
				ep.claims = append(ep.claims, claim(s)...)
			}
		}
		for _, ev := range t.eventsAbout(pod, ep.From, ep.To.Add(maxTrail), "NodeNotReady", "TaintManagerEviction", "Evicted") {
			ep.claims = append(ep.claims, ev.entry)
			if slices.Contains(disrupted, pod) && ev.Reason != "NodeNotReady" {
				ep.said = addCause(ep.said, ev.cause())
			}
		}
	}
	switch {
	case len(disrupted) > 0:
		title += "; on it " + t.counted(disrupted) + " " + how + t.stillTerminating(disrupted, span.open)
	case len(pods) > 0:
		title += "; on it " + t.counted(pods)
	}
	if !span.open {
		title += "; over after " + t.took(span.from, span.to)
		if node.gone.IsZero() && node.final().look().Spec.Unschedulable {
			title += ", but cordoned " + t.atEnd()
		}
	}
	ep.Title = title
	if state == "NotReady" {
		ep.before = t.unobservedBefore(node, span.from)
	}
	ep.covers = func(e *entry) bool { return e.thing == node || slices.Contains(pods, e.thing) }
	t.add(ep)
}

// maxGrace is how long after an outage of the API server a Node may become NotReady because of it:
// the node controller waits for a lease for 40 seconds, and the kubelet renews it every ten.
const maxGrace = 50 * time.Second

// unobservedBefore says that a Node was not observed until shortly before a time; "" if it was. An
// API server that did not answer is a reason for which no kubelet could post its status.
func (t *teller) unobservedBefore(node *thing, at time.Time) string {
	for _, u := range slices.Backward(t.Unobserved) {
		gap := u.Reason == api.InGap || u.Reason == api.Late
		if !gap || u.Resource != node.resource.GroupResource() || u.To.Sub(u.From) < maxTogether || !within(at, u.To, u.To.Add(maxGrace)) {
			continue
		}
		when, what := "right after ", "nothing was observed for "
		if pause := at.Sub(u.To); pause >= 2*time.Second {
			when = words.Duration(pause) + " after "
		}
		if u.NoAnswer {
			what = "the API server did not answer for "
		}
		return when + what + words.Duration(u.To.Sub(u.From))
	}
	return ""
}

// stillTerminating says how many of some Pods that were to go are there at the end of the story; that
// of an episode is open if it is the same.
func (t *teller) stillTerminating(pods []*thing, open bool) string {
	remain, when := 0, ""
	for _, pod := range pods {
		remain += one(pod.gone.IsZero())
	}
	if !open {
		when = " " + t.atEnd()
	}
	switch remain {
	case 0:
		return ""
	case len(pods):
		return ", still terminating" + when
	}
	return fmt.Sprintf(", %d still terminating%s", remain, when)
}

// byName returns one Pod of each name: one of a StatefulSet is created again with the same.
func byName(pods []*thing) (all []*thing) {
	for _, pod := range pods {
		if !slices.ContainsFunc(all, func(other *thing) bool { return other.key == pod.key }) {
			all = append(all, pod)
		}
	}
	return all
}

// counted names Pods: one by its name, several by their number and what they belong to.
func (t *teller) counted(pods []*thing) string {
	pods = byName(pods)
	if len(pods) == 1 {
		return t.called(pods[0])
	}
	var owners []string
	counts := map[string]int{}
	for _, pod := range pods {
		wl := t.calledName(t.workload(pod))
		owners = words.AppendOnce(owners, wl)
		counts[wl]++
	}
	if len(owners) == 1 {
		return fmt.Sprintf("%s of %s", words.Count(len(pods), "Pod"), owners[0])
	}
	for i, wl := range owners {
		owners[i] = fmt.Sprintf("%d of %s", counts[wl], wl)
	}
	return fmt.Sprintf("%s (%s)", words.Count(len(pods), "Pod"), words.List(owners, 6, "workload"))
}

func within(at, from, to time.Time) bool { return !at.Before(from) && !at.After(to) }

// podsOn returns the Pods that were on a Node in a time, and had not ended before.
func (t *teller) podsOn(node string, from, to time.Time) (all []*thing) {
	for _, pod := range t.ofKind("Pod") {
		if begin := pod.at(from); pod.final().asPod().Spec.NodeName == node && pod.existed(from, to) && (begin == nil || !change.Ended(begin.asPod())) {
			all = append(all, pod)
		}
	}
	return all
}

// disruption returns why a Pod was disrupted, and the state that first says so; nil if none does, or
// if its deletion had been requested before, or it had ended.
func (t *teller) disruption(pod *thing) (condition, *state) {
	for i, s := range pod.states {
		if i > 0 && (pod.states[i-1].terminating() || change.Ended(pod.states[i-1].asPod())) {
			break
		}
		if c := change.Disruption(s.asPod()); c != nil {
			said, _ := s.condition(string(c.Type))
			return said, s
		}
	}
	return condition{}, nil
}
