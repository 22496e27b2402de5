// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// preemption says for which Pods others were preempted, with the priorities, and how the
// workload of these Pods was changed.
func (t *teller) preemption(ep *episode, said []string) {
	var preferred []*thing
	for _, th := range t.ofKind("Pod") {
		if slices.ContainsFunc(said, func(text string) bool { return indexWord(text, th.key.Namespace()+"/"+th.key.Name()) >= 0 }) {
			preferred = append(preferred, th)
		}
	}
	switch {
	case len(preferred) > 0:
		wl := t.workload(preferred[0])
		ep.Title += " for " + strings.TrimSpace(t.counted(preferred)+" "+t.priorities(ep, preferred))
		var n notes
		for _, th := range t.ofKind(wl.kind) {
			if th.named() != wl || wl.kind == "Pod" {
				continue
			}
			var changed []*entry
			if _, created := th.begin(); created {
				changed = claim(th.states[0])
			}
			for _, s := range t.steps(th) {
				changed = append(changed, claim(s.state)...)
			}
			for _, e := range changed {
				if within(e.Time, ep.From.Add(-maxConfig), ep.To) {
					n.addOne(t.called(th), e, ep.From, "", true)
				}
			}
		}
		n.tell(ep)
	case len(said) > 0:
		ep.Title += " (" + brief(list(said, 1, "Pod")) + ")"
	}
}

// priorities says which priority Pods have, if all have the same, and adds it as a cause.
func (t *teller) priorities(ep *episode, pods []*thing) string {
	priority := func(th *thing) *int32 { return th.final().asPod().Spec.Priority }
	first := priority(pods[0])
	if first == nil {
		return ""
	}
	ep.said = addCause(ep.said, api.Cause{Kind: "Pod", Namespace: pods[0].key.Namespace(), Name: pods[0].key.Name(), Field: "spec.priority", Text: fmt.Sprint(*first)})
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
		if begin, created := f.pod.begin(); !f.told && f.workload == wl && f.fault.class == unschedulable && created && within(begin, ep.From, ep.To.Add(maxTrail)) {
			f.told = true
			found = append(found, f)
			ep.claims = append(ep.claims, f.claims...)
		}
	}
	if found == nil {
		return ""
	}
	for _, c := range causes(found) {
		ep.said = addCause(ep.said, c.Cause)
	}
	g := &group{all: found, from: ep.From, to: lastEnd(found, ep.To)}
	ep.To, ep.Ongoing = g.to, slices.ContainsFunc(found, func(f *failure) bool { return !f.ended })
	return "; of those created since then, " + summary(found) + t.ending(ep, g)
}
