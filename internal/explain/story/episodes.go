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
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/edges"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// Ranks order the episodes that claim or cover the same entry: the first one gets it.
const (
	rankRollout = iota
	rankDeletion
	rankNode
	rankDisruption
	rankFailure
	rankCreation
	rankJob
	rankAutoscaler
	rankScaling
	rankDeleted
	rankConfig
	rankOther
)

// An episode is being written.
type episode struct {
	api.Episode
	rank int
	// claims are entries that the episode is made of.
	claims []*entry
	// covers reports whether an entry in the time of the episode belongs to it; nil for no.
	covers func(*entry) bool
	// workloads are those whose other entries in the time of the episode accompany it.
	workloads []name

	before   string // what was changed shortly before; it begins the title
	replaced bool   // by the next rollout
	deletes  bool   // Pods: the status of their workload may not have shown it
	atZero   bool   // its workload was scaled to zero in it, and is so at the end of the story
	still    string // what to say if it is not over at the end of the story; "still so" if empty

	entries []*entry
	said    []said
	own     bool // it is about the object of the story
	itself  bool // own, without what its Pods have a part in
}

// kinds are the kinds of the episodes of a rank.
var kinds = [...]string{
	rankRollout: api.EpisodeRollout, rankDeletion: api.EpisodeDeletion, rankNode: api.EpisodeNode, rankDisruption: api.EpisodeDisruption,
	rankFailure: api.EpisodeFailure, rankCreation: api.EpisodeCreation, rankJob: api.EpisodeJob, rankAutoscaler: api.EpisodeAutoscaler,
	rankScaling: api.EpisodeScaling, rankDeleted: api.EpisodeDeletion, rankConfig: api.EpisodeConfig, rankOther: api.EpisodeOther,
}

// newEpisode returns an episode, which has no title yet.
func newEpisode(rank int, severity string, from, to time.Time, ongoing bool) *episode {
	ep := &episode{rank: rank}
	ep.Kind, ep.Severity, ep.From, ep.To, ep.Ongoing = kinds[rank], severity, from, to, ongoing
	return ep
}

const (
	// maxTrail is how long after an episode its consequences are still counted to it.
	maxTrail = 30 * time.Second
	// maxQuiet is the pause that separates two episodes of other changes.
	maxQuiet = 2 * time.Minute
)

// assemble assigns all entries, and returns the episodes in order.
func (t *teller) assemble() []api.Episode {
	byRank := slices.Clone(t.episodes)
	slices.SortStableFunc(byRank, func(a, b *episode) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.From.Compare(b.From))
	})
	foreign := map[*episode]bool{}
	for _, ep := range byRank {
		foreign[ep] = t.foreign(ep)
	}
	give := func(e *entry, ep *episode) {
		if e != nil && e.episode == nil && !(foreign[ep] && t.isTarget(e)) { // what is not told has nothing of the object
			e.episode = ep
			ep.entries = append(ep.entries, e)
		}
	}
	for _, ep := range byRank {
		for _, e := range ep.claims {
			give(e, ep)
		}
	}
	covers := func(e *entry, ep *episode, trail time.Duration) bool {
		last := ep.rank == rankDeleted && trail == 0 // others' consequences come first
		return ep.covers != nil && !last && ep.covers(e)
	}
	begin := func(e *entry, ep *episode) time.Time {
		if _, found := t.edges[ep.From.UnixNano()]; found && !e.NotBefore.IsZero() { // by lists that end one after the other
			return ep.From.Add(-maxTogether)
		}
		return ep.From
	}
	accompanies := func(e *entry, ep *episode, _ time.Duration) bool { return slices.Contains(ep.workloads, e.about) }
	for _, trail := range []time.Duration{0, maxTrail} {
		for _, belongs := range []func(*entry, *episode, time.Duration) bool{covers, accompanies} {
			for _, e := range t.entries {
				for _, ep := range byRank {
					if e.episode == nil && within(e.Time, begin(e, ep), ep.To.Add(trail)) && belongs(e, ep, trail) {
						give(e, ep)
					}
				}
			}
		}
	}
	all := slices.DeleteFunc(byRank, func(ep *episode) bool { return len(ep.entries) == 0 && !ep.untold() })
	all = append(slices.DeleteFunc(all, func(ep *episode) bool { return foreign[ep] }), t.others()...)
	slices.SortStableFunc(all, func(a, b *episode) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.rank, b.rank)) })
	t.all = all
	for _, ep := range all {
		ep.itself = ep.own || slices.ContainsFunc(ep.claims, t.isTarget)
		ep.own = ep.itself || slices.ContainsFunc(ep.workloads, func(n name) bool { return t.isOwn(t.byUID[n.uid]) })
		slices.SortStableFunc(ep.entries, (*entry).compare)
		ep.From, ep.To = ep.From.UTC(), edges.Later(ep.From, ep.To).UTC()
		t.observed(&ep.Episode)
		for _, c := range ep.said {
			ep.Causes = append(ep.Causes, c.Cause)
		}
		ep.Title += t.outcome(ep)
		if ep.before != "" {
			ep.Title = ep.before + ": " + ep.Title
		}
		ep.Entries = []api.StoryEntry{}
		for _, e := range t.fold(ep.entries) {
			ep.Entries = append(ep.Entries, e.StoryEntry)
		}
		if ep.Kind == api.EpisodeOther {
			ep.Title = otherTitle(ep)
		}
		ep.Title = change.Because(ep.Title) // one line
	}
	if len(all) > 0 {
		first := t.mainOf(all)
		first.Main = true
		first.Title += t.closing(first)
	}
	var out []api.Episode
	for _, ep := range all {
		out = append(out, ep.Episode)
	}
	return out
}

// bad reports whether an episode is bad news that is not over.
func (ep *episode) bad() bool { return ep.Ongoing && ep.Severity != api.EpisodeInfo }

// untold reports whether an episode is told although all of its entries belong to others, or
// nothing has changed in the span: it is not over, and no other that is not over has them.
func (ep *episode) untold() bool {
	return ep.Ongoing && (ep.bad() || len(ep.claims) == 0 && len(ep.said) > 0) && !slices.ContainsFunc(ep.claims, func(e *entry) bool { return e != nil && e.episode.bad() })
}

// claimed reports whether an episode of some ranks, or any, is made of an entry.
func (t *teller) claimed(e *entry, ranks ...int) bool {
	return slices.ContainsFunc(t.episodes, func(ep *episode) bool {
		return (ranks == nil || slices.Contains(ranks, ep.rank)) && slices.Contains(ep.claims, e)
	})
}

// others groups the entries that no rule is about.
func (t *teller) others() (all []*episode) {
	var open *episode
	for _, e := range t.entries {
		if e.episode != nil || !t.tells(e) {
			continue
		}
		if open == nil || e.Time.Sub(open.To) > maxQuiet {
			open = newEpisode(rankOther, api.EpisodeInfo, e.Time, e.Time, false)
			all = append(all, open)
		}
		e.episode = open
		open.entries = append(open.entries, e)
		open.To = e.Time
		if e.event != nil && e.event.warns() {
			open.Severity = api.EpisodeWarning
			open.said = addCause(open.said, e.event.cause())
		}
	}
	return all
}

// otherTitle describes an episode of other changes, whose entries are folded: all of them if
// there are few, and what there is most reason to read.
func otherTitle(ep *episode) string {
	var said, kinds, deleted []string
	of := map[string][]string{} // names, by kind; of each change
	events := 0
	for i := range ep.Entries {
		e := &ep.Entries[i]
		said = append(said, fmt.Sprintf("%s %s: %s", e.Kind, e.Name, strings.Join(e.What, "; ")))
		switch e.Type {
		case api.EventType:
			events++
			continue
		case api.Deleted:
			deleted = append(deleted, e.Kind+" "+e.Name)
		}
		kinds = words.AppendOnce(kinds, e.Kind)
		of[e.Kind] = append(of[e.Kind], e.Name)
	}
	if len(said) <= 2 {
		return words.Clip(strings.Join(said, "; "), 2*change.MaxBrief)
	}
	for i, kind := range kinds {
		changes := words.Count(len(of[kind]), "change") + " of "
		if names := slices.Compact(of[kind]); len(names) == 1 { // all of one object
			kinds[i] = changes + kind + " " + names[0]
		} else {
			kinds[i] = changes + words.Plural(kind)
		}
	}
	if events > 0 {
		kinds = append(kinds, words.Count(events, "Event"))
	}
	title := "other: " + words.List(kinds, 4, "kind")
	if deleted != nil {
		title = words.List(deleted, 3, "object") + " deleted; " + title
	}
	if len(ep.said) > 0 {
		title = fmt.Sprintf("%s %s: Warning %s; %s", ep.said[0].Kind, ep.said[0].Name, change.Brief(ep.said[0].Text), title)
	}
	return title
}

// mainOf returns the most important episode, in the order that docs/cli.md says. Less than what it seems is that
// a Node is still cordoned from which the object's Pods were evicted, and in the story of a Node that Pods fail on
// it, or are scaled.
func (t *teller) mainOf(all []*episode) *episode {
	node := t.Resource.Name == "nodes"
	severity := func(ep *episode) int {
		switch {
		case ep.BegunBefore != "" && !ep.Ongoing && ep.To.Sub(ep.From) < time.Second:
		case ep.Severity == api.EpisodeFailed && (ep.itself || !node), ep.Severity == api.EpisodeWarning && (ep.Ongoing || ep.atZero) && (ep.itself || ep.own && ep.rank != rankNode):
			return 2
		case ep.Severity != api.EpisodeInfo && !(node && ep.Kind == api.EpisodeScaling), ep.itself && ep.rank == rankDeleted:
			return 1
		}
		return 0
	}
	vague := map[string]int{api.EpisodeOther: 2, api.EpisodeConfig: 1}
	return slices.MinFunc(all, func(a, b *episode) int {
		return cmp.Or(cmp.Compare(severity(b), severity(a)), cmp.Compare(one(b.bad() || b.atZero), one(a.bad() || a.atZero)), cmp.Compare(one(b.own), one(a.own)),
			cmp.Compare(one(b.itself), one(a.itself)), cmp.Compare(one(b.Ongoing), one(a.Ongoing)), cmp.Compare(vague[a.Kind], vague[b.Kind]))
	})
}

// closing says in the first line how the object ended, if another episode tells that: it was deleted,
// or none of its Pods is wanted.
func (t *teller) closing(ep *episode) string {
	var th *thing
	for _, own := range t.things {
		if t.isOwn(own) && (th == nil || !own.gone.IsZero() || !own.states[0].at.After(ep.To)) {
			th = own
		}
	}
	switch {
	case th == nil, t.lives != nil: // the story of a Pod says what that of its workload does
	case th.last != nil && th.last.episode != ep:
		return fmt.Sprintf("; %s deleted after %s%s", t.called(th), t.took(ep.From, th.gone), t.again(th))
	case th.kind == "CronJob" && ep.rank == rankJob:
		return t.laterJobs(ep)
	case th.last == nil && slices.Contains(Workloads, th.kind) && !th.final().look().Wanted():
		i := len(th.states) - 1
		for i > 0 && !th.states[i-1].look().Wanted() {
			i--
		}
		if i > 0 && !(ep.Kind == api.EpisodeScaling && slices.Contains(ep.claims, th.states[i].entry)) {
			return "; at 0 replicas " + t.atEnd()
		}
	}
	return ""
}

// one is 1 for true.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
