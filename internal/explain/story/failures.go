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

// A failure is a time in which a Pod has faults of one class.
type failure struct {
	pod       *thing
	workload  name
	fault     fault // the one that says most
	from, to  time.Time
	first     *state
	after     *state // that ended it; nil if none did
	ended     bool   // false if it lasts at the end of the span
	end       string // how it ended: recovered, or deleted
	next      string // or what followed: another fault, the end of a Job
	restarts  int32  // of containers, meanwhile
	claims    []*entry
	said      []said // what Events say besides
	described bool   // with a rollout, or a Job
}

// failuresOfPods finds the failures of all Pods, the earliest first.
func (t *teller) failuresOfPods() {
	for _, pod := range t.ofKind("Pod") {
		var open *failure
		var before *state                 // the one before it
		var ready bool                    // it has been
		var held map[string]time.Duration // how long it has said each text
		for i, s := range pod.states {
			f := t.faultOf(pod, i)
			if f == nil {
				f = t.notReady(pod, i, ready)
			}
			ready = ready || isReady(s)
			if open != nil && (f == nil || f.Class != open.fault.Class) {
				open.to, open.after, open.ended = s.at, s, true
				switch {
				case s.terminating():
					open.end = "deleted"
				case f == nil:
					open.end = "recovered"
				default: // it has another fault now
					open.next = f.Reason
				}
				open.claims = append(open.claims, claim(s)...)
				open = nil
			}
			if f == nil {
				continue
			}
			if open == nil {
				open = &failure{pod: pod, workload: t.workload(pod), fault: *f, from: s.at, first: s}
				t.failures = append(t.failures, open)
				before, held = pod.states[max(i-1, 0)], map[string]time.Duration{}
			}
			until := t.until(pod, i)
			held[f.Text] += until.Sub(s.at)
			// The scheduler says in passing what changes about the Nodes, as they are uncordoned.
			passing := f.Class == change.Unschedulable && until.Before(t.To) && held[f.Text] < held[open.fault.Text]
			if f.Weight >= open.fault.Weight && !passing {
				open.fault = *f
			}
			open.restarts = change.Restarts(s.asPod()) - change.Restarts(before.asPod())
			open.claims = append(open.claims, claim(s)...)
		}
		if open != nil {
			open.to = t.To
			if !pod.gone.IsZero() {
				open.to, open.ended, open.end, open.claims = pod.gone, true, "deleted", append(open.claims, pod.last)
			}
		}
	}
	slices.SortStableFunc(t.failures, func(a, b *failure) int { return a.from.Compare(b.from) })
	for _, f := range t.failures {
		for _, ev := range t.eventsAbout(f.pod, f.from.Add(-5*time.Second), f.to) {
			if ev.warns() {
				f.claims = append(f.claims, ev.entry)
			}
		}
		t.probes(f)
	}
}

// probes adds to a failure what Events say about probes: that one failed, and that the kubelet
// ended the container for it.
func (t *teller) probes(f *failure) {
	if f.fault.Class != change.Crashed && f.fault.Class != change.NotReady {
		return
	}
	killed := ""
	for _, ev := range t.eventsAbout(f.pod, f.from.Add(-maxApart), f.to) {
		switch {
		case ev.Reason == "Killing" && strings.Contains(ev.Text(), "probe"):
			if _, _, observed := t.edges.Bounds(f.from); !observed || !ev.entry.Time.After(f.from.Add(5*time.Second)) { // not a later one
				killed = ev.Text()
			}
		case ev.Reason != "Unhealthy":
			continue
		}
		f.claims = append(f.claims, ev.entry)
		f.said = addCause(f.said, ev.cause())
	}
	if killed == "" || f.fault.Class != change.Crashed {
		return
	}
	probe := "liveness"
	if strings.Contains(killed, "startup") {
		probe = "startup"
	}
	f.fault.Reason = "failed " + probe + " probe"
	for _, c := range f.said {
		if said := strings.TrimPrefix(c.Text, "Unhealthy: "); said != c.Text && strings.HasPrefix(strings.ToLower(said), probe) {
			_, f.fault.Detail, _ = strings.Cut(said, "probe failed: ") // not the exit code: the kubelet ended it
			if f.fault.Detail == "" {
				f.fault.Detail = said
			}
			break
		}
	}
}

func claim(s *state) []*entry {
	if s.entry == nil {
		return nil
	}
	return []*entry{s.entry}
}

// A group are failures of one class, of Pods of one workload, that overlap or nearly so, and
// that began soon after each other.
type group struct {
	all      []*failure
	from, to time.Time
	first    *state // at from
}

// maxApart is the pause after which another failure begins another episode.
const maxApart = 2 * time.Minute

// groupFailures groups failures by class and workload. Pods that crash again and again are ready in between.
func (t *teller) groupFailures(all []*failure) (groups []*group) {
	type key struct {
		class change.FaultClass
		of    name
	}
	open, last := map[key]*group{}, map[key]time.Time{} // when the last failure began
	for _, f := range all {
		class := f.fault.Class
		if class == change.NotReady { // containers that crash are not ready in between
			class = change.Crashed
		}
		key := key{class, f.workload}
		g := open[key]
		if g == nil || f.from.Sub(g.to) > maxApart || f.from.Sub(last[key]) > maxBetween || class != change.Crashed && f.from.After(g.to) && t.recovered(f.workload, g.to, f.from) {
			g = &group{from: f.from, to: f.to, first: f.first}
			open[key] = g
			groups = append(groups, g)
		}
		g.all, last[key] = append(g.all, f), f.from
		g.to = edges.Later(g.to, f.to)
	}
	return groups
}

// summary says how many Pods fail, and why: "3 Pods CrashLoopBackOff (exit 1)".
func summary(all []*failure) string {
	counts, pods := map[string][]*failure{}, map[string][]*thing{}
	var reasons []string
	for _, f := range all {
		reasons = words.AppendOnce(reasons, f.fault.Reason)
		counts[f.fault.Reason], pods[f.fault.Reason] = append(counts[f.fault.Reason], f), append(pods[f.fault.Reason], f.pod)
	}
	slices.SortStableFunc(reasons, func(a, b string) int {
		return cmp.Or(cmp.Compare(worst(counts[b]).Weight, worst(counts[a]).Weight), cmp.Compare(len(counts[b]), len(counts[a])))
	})
	var said []string
	for i, r := range reasons {
		if i == 2 {
			said = append(said, fmt.Sprintf("%d more failed for other reasons", len(reasons)-i))
			break
		}
		text := worst(counts[r]).Words()
		if i > 0 {
			text = r
		}
		said = append(said, words.Count(len(byName(pods[r])), "Pod")+" "+text)
	}
	return strings.Join(said, ", ")
}

// worst returns the fault that says most.
func worst(all []*failure) (f fault) {
	for _, one := range all {
		if one.fault.Weight > f.Weight {
			f = one.fault
		}
	}
	return f
}

// causes returns what the objects say, each text once, with the number of objects: that of the story is named.
func (t *teller) causes(all []*failure) (out []said) {
	ordered := slices.Clone(all)
	slices.SortStableFunc(ordered, func(a, b *failure) int {
		return cmp.Or(cmp.Compare(b.fault.Weight, a.fault.Weight), cmp.Compare(one(t.isOwn(b.pod)), one(t.isOwn(a.pod))))
	})
	for _, f := range ordered {
		out = addCause(out, f.fault.cause)
	}
	for _, f := range ordered {
		for _, c := range f.said {
			out = addCause(out, c.Cause)
		}
	}
	return out
}

// otherFailures describes the failures that no other episode does.
func (t *teller) otherFailures() {
	rest := slices.DeleteFunc(slices.Clone(t.failures), func(f *failure) bool { return f.described })
	for _, g := range t.groupFailures(rest) {
		class, wl, lasts := g.all[0].fault.Class, g.all[0].workload, g.to.Sub(g.from) > maxStart
		ep := newEpisode(rankFailure, api.EpisodeFailed, g.from, g.to, slices.ContainsFunc(g.all, func(f *failure) bool { return !f.ended }))
		switch weight := worst(g.all).Weight; {
		case class == change.NotReady && weight == 2 && !lasts:
			ep.Severity = api.EpisodeInfo
		case class == change.NotReady && weight <= 2, class == change.Unschedulable && !lasts:
			ep.Severity = api.EpisodeWarning
		}
		title := fmt.Sprintf("%s: %s", wl, summary(g.all))
		if wl.kind == "Pod" {
			title = fmt.Sprintf("%s: %s", wl, worst(g.all).Words())
		}
		restarted := 0
		for _, f := range g.all {
			restarted += int(f.restarts)
			ep.own = ep.own || t.isOwn(f.pod)
			ep.claims = append(ep.claims, f.claims...)
		}
		if restarted > 0 {
			title += fmt.Sprintf(", %s", words.Count(restarted, "restart"))
		}
		ep.Title, ep.said, ep.still = title, t.causes(g.all), stillOf(g.all)
		n := t.changes(g)
		t.addRollout(&n, g)
		n.tell(ep)
		ep.Title += t.ending(ep, g)
		ep.covers = func(e *entry) bool {
			return slices.ContainsFunc(g.all, func(f *failure) bool { return f.pod == e.thing })
		}
		ep.workloads = []name{wl}
		t.add(ep)
	}
}

// stillOf says how Pods are that have not recovered; "" if they still fail. One that has crashed may
// run again, and not for as long as its back-off.
func stillOf(all []*failure) string {
	open := slices.DeleteFunc(slices.Clone(all), func(f *failure) bool { return f.ended })
	if len(open) == 0 || slices.ContainsFunc(open, func(f *failure) bool { return !isReady(f.pod.final()) || change.Ended(f.pod.final().asPod()) }) {
		return ""
	}
	return "Running after a crash"
}

// maxStart is how long Pods may need to start.
const maxStart = 30 * time.Second

// ends counts the Pods whose last failure has ended, by how.
func ends(all []*failure) (recovered, deleted int) {
	last := map[*thing]*failure{}
	for _, f := range all {
		if was := last[f.pod]; was == nil || !f.to.Before(was.to) {
			last[f.pod] = f
		}
	}
	for _, f := range last {
		recovered += one(f.end == "recovered")
		deleted += one(f.end == "deleted")
	}
	return recovered, deleted
}

// untilDeleted says that Pods that failed were deleted, all of them or some.
func untilDeleted(recovered, deleted int) string {
	if recovered == 0 {
		return ", until deleted"
	}
	return fmt.Sprintf(", until %d recovered and %d deleted", recovered, deleted)
}

// ending says how a group of failures ended.
func (t *teller) ending(ep *episode, g *group) string {
	recovered, deleted := ends(g.all)
	wl := g.all[0].workload
	switch {
	case ep.Ongoing:
		return ""
	case deleted > 0:
		if by := t.rolloutAt(wl, g.to); by != "" {
			return ", until " + by
		}
		return untilDeleted(recovered, deleted)
	case recovered == 0:
		return ", then " + g.all[len(g.all)-1].next
	case g.all[0].fault.Class == change.Unschedulable:
		return ", scheduled after " + t.took(g.from, g.to)
	}
	return ", recovered after " + t.took(g.from, g.to)
}
