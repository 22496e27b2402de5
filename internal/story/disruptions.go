// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/change"
	"github.com/watchkeeper/watchkeeper/internal/words"
)

// disruptedBy has the reasons of the condition DisruptionTarget, in words.
var disruptedBy = map[string]string{
	"PreemptionByScheduler":  "preempted by the scheduler",
	"EvictionByEvictionAPI":  "evicted by the eviction API",
	"DeletionByTaintManager": "evicted because of a NoExecute taint",
	"DeletionByPodGC":        "deleted by the Pod garbage collector",
	"TerminationByKubelet":   "terminated by the kubelet",
}

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
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n].state.at.Sub(all[n-1].state.at) <= maxApart {
				n++
			}
			t.tellDisruption(all[:n])
			all = all[n:]
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
	how := cmp.Or(disruptedBy[first.condition.Reason], "disrupted ("+first.condition.Reason+")")
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
	case disruptedBy[first.condition.Reason] == "":
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
		if len(th.uid) < 8 {
			continue
		}
		if i := words.IndexWord(text, th.uid); i >= 0 {
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
