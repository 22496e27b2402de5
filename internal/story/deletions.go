// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// maxFinalizing is how long finalizers may take before a deletion counts as blocked.
const maxFinalizing = 30 * time.Second

// deletions describes objects whose deletion was requested, and what it waits for.
func (t *teller) deletions() {
	for _, th := range t.things {
		if i := slices.IndexFunc(th.states, (*state).terminating); i >= 0 && (th.kind != "Pod" || len(th.states[i].look().Metadata.Finalizers) > 0) {
			t.tellFinalizers(th, i)
			continue
		} else if i >= 0 && th.gone.IsZero() {
			t.tellTerminating(th, i)
			continue
		}
		own := t.isOwn(th)
		if !th.gone.IsZero() && th.kind != "Node" && (own || th.controller() == nil && th.kind != "Pod" && th.kind != "ConfigMap" && th.kind != "Secret") {
			t.tellDeleted(th, th.gone, []*entry{th.last})
		}
	}
}

func (t *teller) tellDeleted(th *thing, from time.Time, claims []*entry) *episode {
	ep := &episode{rank: rankDeleted}
	ep.Kind, ep.Severity, ep.From, ep.To = api.EpisodeDeletion, api.EpisodeInfo, from, th.gone
	ep.Title = fmt.Sprintf("%s %s deleted", th.kind, th.key.Name())
	if th.kind != "Pod" { // that of a Pod is rather a part of another episode
		ep.claims = claims
		ep.workloads = []name{t.workload(th)}
	}
	t.ofDeletion(ep, th)
	return t.add(ep)
}

// ofDeletion gives an episode of a deletion what it is about: the thing, and with a Namespace what
// is in it. That the object of the story is deleted is told as that.
func (t *teller) ofDeletion(ep *episode, th *thing) {
	in := th.kind == "Namespace"
	ep.own = t.isOwn(th) || in && ep.Ongoing && t.Key.Namespace() == th.key.Name()
	ep.covers = func(e *entry) bool {
		return e.thing == th || in && e.Namespace == th.key.Name() && (e.Type != api.Deleted || !t.isTarget(e))
	}
}

// tellFinalizers describes a deletion that waits for finalizers. i is the first state that is
// terminating.
func (t *teller) tellFinalizers(th *thing, i int) {
	first, final := th.states[i], th.final()
	claims := claim(first)
	var removed []string
	before := first.look().Metadata.Finalizers
	for _, s := range th.states[i+1:] {
		now := s.look().Metadata.Finalizers
		for _, f := range before {
			if !slices.Contains(now, f) {
				removed = append(removed, fmt.Sprintf("finalizer %s removed%s", f, s.entry.by()))
				claims = append(claims, claim(s)...)
			}
		}
		before = now
	}
	if th.last != nil {
		claims = append(claims, th.last)
	}
	end := t.To
	if !th.gone.IsZero() {
		end = th.gone
	}
	waited := end.Sub(first.at)
	if th.gone.IsZero() || waited > maxFinalizing {
		ep := &episode{rank: rankDeletion}
		ep.Kind, ep.Severity, ep.From, ep.To, ep.Ongoing = api.EpisodeDeletion, api.EpisodeFailed, first.at, end, th.gone.IsZero()
		if ep.Ongoing && waited <= maxFinalizing {
			ep.Severity = api.EpisodeWarning
		}
		names := strings.Join(first.look().Metadata.Finalizers, ", ")
		ep.said = addCause(nil, first.cause("metadata.finalizers", names))
		if names == "" {
			ep.said = addCause(nil, first.cause("metadata.deletionTimestamp", first.look().Metadata.DeletionTimestamp.UTC().Format(time.RFC3339)))
		}
		title := fmt.Sprintf("deletion of %s %s is blocked by its finalizers (%s)", th.kind, th.key.Name(), strings.Join(final.look().Metadata.Finalizers, ", "))
		switch {
		case names == "" && ep.Ongoing:
			title = fmt.Sprintf("%s %s terminates", th.kind, th.key.Name())
		case names == "":
			title = fmt.Sprintf("deletion of %s %s waited for %s", th.kind, th.key.Name(), t.took(first.at, end))
		case !ep.Ongoing:
			title = fmt.Sprintf("deletion of %s %s was blocked by its finalizers (%s) for %s", th.kind, th.key.Name(), names, t.took(first.at, end))
		case len(final.look().Metadata.Finalizers) == 0:
			title = fmt.Sprintf("%s %s terminates, and has no finalizers", th.kind, th.key.Name())
		}
		inside := t.heldUpBy(th, first.at, end)
		if len(inside) > 0 && !ep.Ongoing {
			title = fmt.Sprintf("deletion of %s %s was held up for %s by %s", th.kind, th.key.Name(), t.took(first.at, end), t.finalizersOf(ep, inside))
		} else if len(inside) > 0 {
			title = fmt.Sprintf("deletion of %s %s waits for %s", th.kind, th.key.Name(), t.finalizersOf(ep, inside))
		}
		for _, typ := range []string{"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure", "NamespaceFinalizersRemaining", "NamespaceContentRemaining"} {
			for _, span := range t.spansOf(th, typ, "True") {
				ep.said = addCause(ep.said, span.cause())
				ep.claims = append(ep.claims, span.claims...)
				if len(inside) == 0 {
					title += "; " + span.condition.brief()
				}
			}
		}
		if len(removed) > 0 {
			title += "; " + list(removed, 2, "finalizer")
		} else if !ep.Ongoing && names != "" {
			title += "; who removed them is in no object"
		}
		ep.Title = title
		ep.claims = append(ep.claims, claims...)
		t.ofDeletion(ep, th)
		t.add(ep)
		return
	}
	if th.controller() == nil {
		t.tellDeleted(th, first.at, claims)
	}
}

// tellTerminating describes a Pod that terminates longer than its grace period.
func (t *teller) tellTerminating(pod *thing, i int) {
	s := pod.states[i]
	due := s.look().Metadata.DeletionTimestamp.Time // has the grace period in it
	late := t.To.Sub(due)
	if late < maxTrail {
		return
	}
	ep := &episode{rank: rankDeletion}
	ep.Kind, ep.Severity, ep.From, ep.To, ep.Ongoing = api.EpisodeDeletion, api.EpisodeFailed, s.at, t.To, true
	ep.Title = fmt.Sprintf("Pod %s terminates, %s longer than its grace period", pod.key.Name(), lasted(late))
	ep.said = addCause(nil, s.cause("metadata.deletionTimestamp", due.UTC().Format(time.RFC3339)))
	ep.claims = claim(s)
	ep.covers = func(e *entry) bool { return e.thing == pod }
	t.add(ep)
}

// heldUpBy returns the objects in a Namespace that is being deleted whose finalizers its
// condition names.
func (t *teller) heldUpBy(namespace *thing, from, to time.Time) (inside []*thing) {
	if namespace.kind != "Namespace" {
		return nil
	}
	named := ""
	for _, span := range t.spansOf(namespace, "NamespaceFinalizersRemaining", "True") {
		named += span.condition.Message + " "
	}
	for _, th := range t.things {
		i := slices.IndexFunc(th.states, (*state).terminating)
		if th.key.Namespace() != namespace.key.Name() || i < 0 || !within(th.states[i].at, from, to) || !th.gone.IsZero() && th.gone.Sub(th.states[i].at) <= maxFinalizing {
			continue
		}
		if slices.ContainsFunc(th.states[i].look().Metadata.Finalizers, func(f string) bool { return strings.Contains(named, f) }) {
			inside = append(inside, th)
		}
	}
	return inside
}

// finalizersOf names objects and their finalizers, which it adds as causes.
func (t *teller) finalizersOf(ep *episode, all []*thing) string {
	var texts []string
	for _, th := range all {
		i := slices.IndexFunc(th.states, (*state).terminating)
		names := strings.Join(th.states[i].look().Metadata.Finalizers, ", ")
		ep.said = addCause(ep.said, th.states[i].cause("metadata.finalizers", names))
		text := fmt.Sprintf("%s %s (finalizer %s", th.kind, th.key.Name(), names)
		if !th.gone.IsZero() {
			text += ", gone after " + t.took(th.states[i].at, th.gone)
		}
		texts = append(texts, text+")")
	}
	return list(texts, 2, "object")
}
