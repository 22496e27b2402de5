// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/words"
)

// maxFinalizing is how long finalizers may take before a deletion counts as blocked.
const maxFinalizing = 30 * time.Second

// deletions describes objects whose deletion was requested, and what it waits for.
func (t *teller) deletions() {
	for _, th := range t.things {
		i := slices.IndexFunc(th.states, (*state).terminating)
		switch own := t.isOwn(th); {
		case i >= 0 && (th.gone.IsZero() || th.kind != "Pod" || th.states[i].finalizers() != ""):
			t.tellFinalizers(th, i)
		case !th.gone.IsZero() && th.kind != "Node" && (own || th.controller() == nil && th.kind != "Pod" && th.kind != "ConfigMap" && th.kind != "Secret"):
			t.tellDeleted(th, th.gone, []*entry{th.last})
		}
	}
}

// finalizers returns the finalizers of a state.
func (s *state) finalizers() string { return strings.Join(s.look().Metadata.Finalizers, ", ") }

func (t *teller) tellDeleted(th *thing, from time.Time, claims []*entry) {
	ep := newEpisode(rankDeleted, api.EpisodeInfo, from, th.gone, false)
	ep.Title = fmt.Sprintf("%s %s deleted", th.kind, th.key.Name())
	if th.kind != "Pod" { // that of a Pod is rather a part of another episode
		ep.claims = claims
		ep.workloads = []name{t.workload(th)}
	}
	t.ofDeletion(ep, th)
	t.add(ep)
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

// tellFinalizers describes a deletion that takes long, or that waits for finalizers. i is the first
// state that is terminating.
func (t *teller) tellFinalizers(th *thing, i int) {
	first, end := th.states[i], t.until(th, len(th.states)-1)
	claims := claim(first)
	var removed []string
	for j, s := range th.states[i+1:] {
		for _, f := range th.states[i+j].look().Metadata.Finalizers {
			if !slices.Contains(s.look().Metadata.Finalizers, f) {
				removed = append(removed, fmt.Sprintf("finalizer %s removed%s", f, s.entry.by()))
				claims = append(claims, claim(s)...)
			}
		}
	}
	if th.last != nil {
		claims = append(claims, th.last)
	}
	names, left := first.finalizers(), th.final().finalizers()
	due := first.look().Metadata.DeletionTimestamp.Time // has the grace period of a Pod in it
	late := end.Sub(due)
	ep := newEpisode(rankDeletion, api.EpisodeFailed, first.at, end, th.gone.IsZero())
	switch waited := end.Sub(first.at); {
	case !ep.Ongoing && waited <= maxFinalizing:
		if th.controller() == nil {
			t.tellDeleted(th, first.at, claims)
		}
		return
	case th.kind == "Pod" && names == "" && late < maxTrail:
		return
	case waited <= maxFinalizing:
		ep.Severity = api.EpisodeWarning
	}
	ep.claims, ep.said = claims, addCause(nil, first.cause("metadata.finalizers", names))
	if names == "" {
		ep.said = addCause(nil, first.cause("metadata.deletionTimestamp", due.UTC().Format(time.RFC3339)))
	}
	what, took := th.kind+" "+th.key.Name(), t.took(first.at, end)
	inside := t.heldUpBy(th, first.at, end)
	switch {
	case len(inside) > 0 && ep.Ongoing:
		ep.Title = fmt.Sprintf("deletion of %s waits for %s", what, t.finalizersOf(ep, inside))
	case len(inside) > 0:
		ep.Title = fmt.Sprintf("deletion of %s was held up for %s by %s", what, took, t.finalizersOf(ep, inside))
	case names == "" && !ep.Ongoing:
		ep.Title = fmt.Sprintf("deletion of %s waited for %s", what, took)
	case names == "" && th.kind == "Pod":
		ep.Title = fmt.Sprintf("%s terminates, %s longer than its grace period", what, words.Duration(late))
	case names == "":
		ep.Title = what + " terminates"
	case !ep.Ongoing:
		ep.Title = fmt.Sprintf("deletion of %s was blocked by its finalizers (%s) for %s", what, names, took)
	case left == "":
		ep.Title = what + " terminates, and has no finalizers"
	default:
		ep.Title = fmt.Sprintf("deletion of %s is blocked by its finalizers (%s)", what, left)
	}
	for _, typ := range []string{"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure", "NamespaceFinalizersRemaining", "NamespaceContentRemaining"} {
		for _, span := range t.spansOf(th, typ, "True") {
			ep.said = addCause(ep.said, span.cause())
			ep.claims = append(ep.claims, span.claims...)
			if len(inside) == 0 {
				ep.Title += "; " + span.condition.brief()
			}
		}
	}
	if len(removed) > 0 {
		ep.Title += "; " + words.List(removed, 2, "finalizer")
	} else if !ep.Ongoing && names != "" {
		ep.Title += "; who removed them is in no object"
	}
	t.ofDeletion(ep, th)
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
		names := th.states[i].finalizers()
		ep.said = addCause(ep.said, th.states[i].cause("metadata.finalizers", names))
		text := fmt.Sprintf("%s %s (finalizer %s", th.kind, th.key.Name(), names)
		if !th.gone.IsZero() {
			text += ", gone after " + t.took(th.states[i].at, th.gone)
		}
		texts = append(texts, text+")")
	}
	return words.List(texts, 2, "object")
}
