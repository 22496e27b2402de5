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
			t.tellDeleted(th, th.gone, "", []*entry{th.last})
		}
	}
}

// finalizers returns the finalizers of a state.
func (s *state) finalizers() string { return strings.Join(s.look().Metadata.Finalizers, ", ") }

func (t *teller) tellDeleted(th *thing, from time.Time, finalizers string, claims []*entry) {
	ep := newEpisode(rankDeleted, api.EpisodeInfo, from, th.gone, false)
	ep.Title = fmt.Sprintf("%s %s deleted", th.kind, th.key.Name())
	if finalizers != "" && th.gone.Sub(from) > maxTogether {
		ep.Title += fmt.Sprintf(", %s after that was requested (finalizers: %s)", t.took(from, th.gone), finalizers)
	}
	if th.kind != "Pod" { // that of a Pod is rather a part of another episode
		ep.claims, ep.workloads = claims, []name{t.workload(th)}
	}
	t.ofDeletion(ep, th)
	t.add(ep)
}

// again says that an object was created again after its deletion; "" if it was not.
func (t *teller) again(th *thing) string {
	for _, next := range t.things {
		if begin, created := next.begin(); created && next != th && next.resource == th.resource && next.key == th.key && (t.isOwn(th) || th.kind == "Node") && th.last != nil && !begin.Before(th.gone) {
			return ", and created again" + next.states[0].entry.by() + " after " + t.took(th.gone, begin)
		}
	}
	return ""
}

// ofDeletion gives an episode of a deletion what it is about: the thing, and with a Namespace what
// is in it. That the object of the story is deleted is told as that.
func (t *teller) ofDeletion(ep *episode, th *thing) {
	ep.Title += t.again(th)
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
			t.tellDeleted(th, first.at, names, claims)
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
				ep.Title += "; " + span.condition.Brief()
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

// heldUpBy returns the objects in a Namespace that is being deleted whose finalizers its condition names.
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

// unasked returns the state in which the deletion of a Pod was requested, if the controller of the
// Pod did not request it: nil if it did, or may have, or the Pod was not deleted. A controller does
// while there are more Pods than it should have, to update a Pod, and if the Pod has ended; and
// what a controller owns is deleted with it, which nobody asked for if that is [teller.lost].
func (t *teller) unasked(pod *thing) *state {
	i := slices.IndexFunc(pod.states, (*state).terminating)
	var s *state
	switch c := pod.controller(); {
	case c == nil || t.byUID[string(c.UID)] == nil:
		return nil
	case i > 0:
		s = pod.states[i]
	case i < 0 && pod.last != nil: // without a grace period
		s = &state{thing: pod, at: pod.gone, o: pod.final().o, entry: pod.last}
	}
	if s == nil || s.entry == nil || !s.entry.NotBefore.IsZero() || change.Ended(s.asPod()) {
		return nil
	}
	owner := t.byUID[string(pod.controller().UID)]
	for _, th := range append(t.ofKind("Namespace"), owner, t.byUID[t.workload(pod).uid]) {
		if th == nil || th.kind == "Namespace" && th.key.Name() != pod.key.Namespace() {
			continue
		}
		if last := th.at(s.at.Add(maxTogether)); (last == nil || last.terminating()) && !t.lost(th, s.at) {
			return nil
		}
	}
	active := int64(0)
	for _, other := range t.ofKind("Pod") {
		if was := other.at(s.at.Add(-1)); other.controlledBy(owner.uid) && was != nil && !was.terminating() && !change.Ended(was.asPod()) {
			active++
		}
	}
	asked := !slices.Contains(Workloads, owner.kind) || slices.ContainsFunc(t.eventsAbout(owner, s.at.Add(-maxTogether), s.at.Add(maxTogether), "SuccessfulDelete"), func(ev *event) bool {
		return slices.ContainsFunc(ev.messages, func(text string) bool { return words.IndexWord(text, pod.key.Name()) >= 0 })
	})
	for _, o := range owner.states { // the two come from different watches
		if _, want := o.look().Ready(); o == owner.at(s.at) || within(o.at, s.at, s.at.Add(time.Second)) {
			asked = asked || want < max(active, o.look().Status.Replicas) || o.look().Outdated(s.look())
		}
	}
	if asked {
		return nil
	}
	return s
}

// lost reports whether a ReplicaSet is deleted at a time although its Deployment wants its Pods: that
// deletes only those without.
func (t *teller) lost(rs *thing, at time.Time) bool {
	of, last := t.byUID[t.workload(rs).uid], rs.at(at.Add(maxTogether))
	return of != nil && of != rs && rs.final().look().Wanted() && (last == nil || last.terminating())
}

// replaced says in an episode of deleted Pods how many of all they are, and how many their
// controllers have replaced, after which time. It returns the Pods that replace them.
func (t *teller) replaced(ep *episode, deleted []*thing) []*thing {
	isNew := func(pod *thing) bool {
		begin, created := pod.begin()
		return created && !begin.Before(ep.From)
	}
	owner, with := t.byUID[string(deleted[0].controller().UID)], ""
	lost := t.lost(owner, ep.From)
	if lost {
		with = " with " + t.called(owner)
		ep.claims = append(ep.claims, owner.last)
		if !owner.gone.IsZero() && owner.gone.Before(ep.From) {
			ep.From = owner.gone
		}
	}
	all := slices.DeleteFunc(t.ofKind("Pod"), func(pod *thing) bool {
		useless := !pod.gone.IsZero() && !slices.ContainsFunc(pod.states, isReady) // it was replaced itself
		return !isNew(pod) || useless || slices.Contains(deleted, pod) || !slices.ContainsFunc(deleted, func(d *thing) bool {
			return pod.controlledBy(string(d.controller().UID)) || lost && t.workload(pod) == t.workload(d)
		})
	})
	slices.SortStableFunc(all, func(a, b *thing) int { return a.states[0].at.Compare(b.states[0].at) })
	n := max(len(slices.DeleteFunc(slices.Clone(deleted), isNew)), 1) // a Pod that replaces another may be deleted, too
	all = all[:min(len(all), n)]
	ready, from, to := 0, ep.From, ep.From
	for _, pod := range all {
		if i := slices.IndexFunc(pod.states, isReady); i >= 0 {
			ready++
			to = edges.Later(to, pod.states[i].at)
		}
	}
	var named []string // a Pod of a StatefulSet is created again with the same name
	left := 0
	for _, pod := range deleted {
		named = words.AppendOnce(named, pod.key.Name())
		left += one(pod.gone.IsZero())
	}
	of, what, times := t.workload(deleted[0]), words.Count(len(named), "Pod"), with
	if len(named) < len(deleted) {
		times += fmt.Sprintf(" %d times in all (%s)", len(deleted), words.List(named, 3, "Pod"))
	}
	if wl := t.byUID[of.uid]; wl != nil && wl.at(from) != nil {
		if _, want := wl.at(from).look().Ready(); int(want) >= len(named) {
			what = fmt.Sprintf("%d of %s", len(named), words.Count(int(want), "Pod"))
		}
		// Its status has them a moment later.
		if i := slices.IndexFunc(wl.states, func(s *state) bool { return within(s.at, to, to.Add(maxTogether)) && !short(s) }); i >= 0 {
			to = wl.states[i].at
		}
	}
	ep.deletes = true
	ep.Title = fmt.Sprintf("%s: %s deleted%s", t.calledName(of), what, times)
	switch {
	case left > 0 && ready < n: // a StatefulSet makes no other before
		ep.Ongoing, ep.To, ep.still = true, t.To, words.Count(left, "Pod")+" still terminating"
		ep.Title = fmt.Sprintf("%s: deletion of %s%s requested", t.calledName(of), what, with)
	case ready == n:
		ep.To = to
		ep.Title += ", replaced after " + t.took(from, to)
	case ready == 0:
		ep.Title += ", none replaced " + t.atEnd()
	default:
		ep.Title += fmt.Sprintf(", %d replaced %s", ready, t.atEnd())
	}
	return all
}
