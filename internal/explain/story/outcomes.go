// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/spans"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// outcome ends the title of an episode that is bad news: whether it is over, and how many Pods
// of its workload are ready, and were at least.
func (t *teller) outcome(ep *episode) string {
	if ep.Severity == api.EpisodeInfo || ep.Kind == api.EpisodeOther || ep.Kind == api.EpisodeScaling {
		return ""
	}
	text := ""
	if ep.Ongoing {
		text = fmt.Sprintf("; %s %s", cmp.Or(ep.still, "still so"), t.atEnd())
	}
	th := t.workloadOf(ep)
	if th == nil {
		return text
	}
	to, until, when := ep.To, ep.To, "at its end"
	for i, s := range th.states { // what follows a change of the workload is not of a Node, or of an eviction
		if i > 0 && (ep.rank == rankNode || ep.rank == rankDisruption) && s.at.After(ep.From) && s.at.Before(until) && generationOf(th, i) != generationOf(th, i-1) {
			until = s.at.Add(-1)
		}
	}
	if until.Before(to) && !ep.Ongoing {
		to, when = until, "when "+t.called(th)+" was changed"
	}
	end := th.at(to)
	if end == nil || t.ready(th.named()).At(to) < t.ready(th.named()).At(end.at) { // its status is older than that
		return text
	}
	ready, want := end.look().Ready()
	lowest := ready
	known := func(s *state) bool { // what came before an episode that begins in a gap is none of it
		begin, _, ok := t.edges.Bounds(ep.From)
		return !ok || begin.Equal(ep.From) || len(ep.claims) == 0 || ep.claims[0] == nil || ep.claims[0].state == nil || t.order(s, ep.claims[0].state) >= 0
	}
	if s := th.lowest(ep.From, until, known); s != nil {
		lowest = min(lowest, s.look().ReadyPods())
	}
	least := ""
	if lowest < ready {
		least = fmt.Sprintf(" (%d at the lowest)", lowest)
	}
	gap := false // some of the time, or just before it, was not observed
	for at := range t.edges {
		gap = gap || at >= ep.From.UnixNano() && at <= ep.To.UnixNano()
	}
	switch {
	case ep.Ongoing && ep.deletes && ready >= want:
		return text // the status has not shown it
	case ep.Ongoing:
		return text + fmt.Sprintf(", with %d of %d ready%s", ready, want, least)
	case want == 0: // it was scaled down
		return ""
	case !to.Equal(ep.To):
	case ready < want:
		for _, span := range t.spans(th, func(s *state) bool { return !short(s) }) {
			// Pods that crash again and again are ready for a moment, too.
			switch n, enough := span.first.look().Ready(); {
			case !span.from.After(ep.To):
			case span.to.Sub(span.from) >= maxTrail || span.after != nil && t.disturbed(th, span):
				after := strings.Replace("another "+t.took(ep.To, span.from), "another less", "less", 1)
				return fmt.Sprintf("; %d of %d ready at its end%s, and %d of %d after %s", ready, want, least, n, enough, after)
			case span.to.Equal(t.To):
				return fmt.Sprintf("; %d of %d ready at its end%s, and %d of %d %s", ready, want, least, n, enough, t.atEnd())
			}
		}
	case lowest == ready && ready >= want && (ep.deletes || gap):
		return "" // what the status has not shown, or was not observed, is not known
	case lowest == ready && ready >= want:
		return fmt.Sprintf("; %d of %d ready all the time", ready, want)
	}
	return fmt.Sprintf("; %d of %d ready %s%s", ready, want, when, least)
}

// disturbed reports whether a span of a workload ended because it was changed, or its Pods were
// disrupted, and not by itself.
func (t *teller) disturbed(th *thing, s span) bool {
	return s.first.look().Metadata.Generation != s.after.look().Metadata.Generation || slices.ContainsFunc(t.episodes, func(ep *episode) bool {
		return (ep.rank == rankDisruption || ep.rank == rankNode) && within(ep.From, s.from, s.to) && slices.Contains(ep.workloads, th.named())
	})
}

// atEnd names the last moment of which the story tells.
func (t *teller) atEnd() string {
	if t.Last.IsZero() {
		return "at the end of the story"
	}
	return "when it was last observed"
}

// ready returns how many Pods of a workload are ready, of those that are known, at each time.
func (t *teller) ready(of name) spans.Counts {
	if t.readiness[of] == nil {
		var all [][2]time.Time
		for _, pod := range t.ofKind("Pod") {
			if t.workload(pod) == of {
				for _, s := range t.spans(pod, func(s *state) bool { return isReady(s) && !s.terminating() }) {
					all = append(all, [2]time.Time{s.from, map[bool]time.Time{false: s.to}[s.open]})
				}
			}
		}
		t.readiness[of] = spans.Counted(all...)
	}
	return t.readiness[of]
}

// recovered reports whether a workload had all its Pods at some moment between two troubles: they became
// ready, or its status says that it runs its newest template everywhere.
func (t *teller) recovered(of name, from, to time.Time) bool {
	wl := t.byUID[of.uid]
	return wl != nil && (slices.ContainsFunc(t.ready(of).Within(from, to), func(c spans.Count) bool {
		then := wl.at(c.From)
		return then != nil && !c.From.Before(from) && then.look().Enough(c.N)
	}) || slices.ContainsFunc(wl.states, func(s *state) bool {
		return !s.at.Before(from) && s.at.Before(to) && s.look().Complete() && s.look().Enough(t.ready(of).At(s.at))
	}))
}

// workloadOf returns the workload that an episode is about: that of the story, or the only one
// of the episode; nil if there is none.
func (t *teller) workloadOf(ep *episode) *thing {
	var all []*thing
	for _, n := range ep.workloads {
		th := t.byUID[n.uid]
		switch {
		case th == nil, !slices.Contains(Workloads, th.kind), th.kind == "ReplicaSet" && th.controller() != nil:
		case t.isOwn(th):
			return th
		default:
			all = words.AppendOnce(all, th)
		}
	}
	if len(all) != 1 {
		return nil
	}
	return all[0]
}

// short reports whether fewer Pods of a workload are ready than should be.
func short(s *state) bool { return s.look().Short() }

// lowest returns which of some states of a workload in a time has the fewest ready Pods, nil if there is none.
func (th *thing) lowest(from, to time.Time, is func(*state) bool) (worst *state) {
	for _, s := range th.states {
		if is(s) && (within(s.at, from, to) || s == th.at(from)) && (worst == nil || s.look().ReadyPods() < worst.look().ReadyPods()) {
			worst = s
		}
	}
	return worst
}

// shortages describes workloads that have fewer ready Pods than they should at the end of the story, for longer than
// it takes to replace a Pod, if no other episode that is not over does: their Pods may be replaced, or not known.
func (t *teller) shortages() {
	for _, th := range t.ofKind(Workloads...) {
		spans := t.spans(th, short) // not one from which enough were ready in between
		told := slices.ContainsFunc(t.episodes, func(ep *episode) bool {
			return ep.Ongoing && (ep.bad() || ep.Kind == api.EpisodeRollout || ep.Kind == api.EpisodeScaling) && slices.Contains(ep.workloads, th.named())
		})
		if len(spans) == 0 || told || th.kind == "ReplicaSet" && th.controller() != nil {
			continue
		}
		span := spans[len(spans)-1]
		if !span.open || t.To.Sub(span.from) < maxTrail {
			continue
		}
		ep := newEpisode(rankFailure, api.EpisodeWarning, span.from, t.To, true)
		ep.Title = fmt.Sprintf("%s: too few Pods are ready", t.called(th))
		ep.said = addCause(nil, th.final().cause(th.final().look().Readiness()))
		if c, ok := th.final().condition("Available"); ok && c.Status == "False" {
			ep.Severity, ep.said = api.EpisodeFailed, addCause(nil, th.final().because(c))
		}
		ep.own = t.isOwn(th)
		ep.claims, ep.workloads = claim(span.first), []name{th.named()}
		t.add(ep)
	}
}
