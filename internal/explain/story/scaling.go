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
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// A step is one change of a workload's number of replicas.
type step struct {
	state    *state
	from, to int64
	ready    time.Time // when as many were ready; zero if they were not before the next step
	by       string    // " by kubectl-scale"; "" if that is not known
	reason   string    // what an autoscaler's Event says, or what was changed
	event    *event
}

// maxBetween is the pause after which another step of an autoscaler is another episode (of
// others, it is maxTrail), and manyTurns how many changes of direction make it a warning.
const (
	maxBetween = 5 * time.Minute
	manyTurns  = 2
)

// scaling describes changes of the number of replicas. Those of a ReplicaSet that a Deployment
// controls are a part of its rollouts and scaling.
func (t *teller) scaling() {
	for _, th := range t.things {
		if c := th.controller(); th.kind == "Pod" || th.kind == "ReplicaSet" && c != nil {
			continue
		}
		runs := words.Runs(t.steps(th), func(a, b step) bool {
			pause := b.state.at.Sub(a.state.at)
			return pause > maxBetween || pause > maxTrail && (a.event == nil || b.event == nil) || t.retuned(th, a.state.at, b.state.at)
		})
		var next *state
		for _, steps := range slices.Backward(runs) {
			t.tellScaling(th, steps, next)
			next = steps[0].state
		}
	}
}

// steps returns the changes of the number of replicas of a thing. Nodes come and go, so that of a
// DaemonSet is one only to zero, and back.
func (t *teller) steps(th *thing) (all []step) {
	var last *int64
	for _, s := range th.states {
		l := s.look()
		now, exist, ready := l.Scale()
		daemons := th.kind == "DaemonSet"
		if now == nil {
			continue
		}
		if last != nil && *last != *now && (!daemons || *now == 0 || *last == 0 && all != nil) {
			one := step{state: s, from: *last, to: *now, by: s.entry.by()}
			if daemons {
				one.by = ""
				seen := th.before(s).look().Status.ObservedGeneration
				for i, was := range th.states { // the change of which this status is the first
					if e := was.entry; e != nil && !e.onlyStatus && generationOf(th, i) > seen && generationOf(th, i) <= l.Status.ObservedGeneration && !was.at.After(s.at) {
						one.by, one.reason = e.by(), strings.Join(change.Shortened(e.What), ", ")
					}
				}
			}
			for _, hpa := range t.autoscalersOf(th) { // its Event says why
				for _, ev := range t.eventsAbout(hpa, s.at.Add(-5*time.Second), s.at.Add(5*time.Second), "SuccessfulRescale") {
					if strings.Contains(ev.Text(), fmt.Sprintf("New size: %d;", one.to)) { // not that of a step just before or after
						_, one.reason, _ = strings.Cut(ev.Text(), "reason: ")
						one.event, one.by = ev, " by HorizontalPodAutoscaler "+hpa.key.Name()
					}
				}
			}
			all = append(all, one)
		}
		last = now
		if n := len(all); n > 0 && all[n-1].ready.IsZero() && l.Status.ObservedGeneration >= l.Metadata.Generation && exist == *now && ready == *now {
			all[n-1].ready = s.at
		}
	}
	return all
}

// autoscalersOf returns the autoscalers whose scaleTargetRef is a thing.
func (t *teller) autoscalersOf(th *thing) (all []*thing) {
	for _, hpa := range t.ofKind("HorizontalPodAutoscaler") {
		ref := hpa.final().look().Spec.ScaleTargetRef
		if hpa.key.Namespace() == th.key.Namespace() && ref.Kind == th.kind && ref.Name == th.key.Name() {
			all = append(all, hpa)
		}
	}
	return all
}

// retuned reports whether an autoscaler of a thing was changed between two steps.
func (t *teller) retuned(th *thing, from, to time.Time) bool {
	return slices.ContainsFunc(t.autoscalersOf(th), func(hpa *thing) bool {
		return slices.ContainsFunc(hpa.states, func(s *state) bool {
			return s.entry != nil && !s.entry.onlyStatus && s.entry.Type == api.Modified && within(s.at, from, to)
		})
	})
}

// tellScaling adds the episode of some steps, of which the next one is that of a state; nil for none.
func (t *teller) tellScaling(th *thing, steps []step, next *state) {
	of := t.autoscalersOf(th)
	first, last := steps[0], steps[len(steps)-1]
	ep := newEpisode(rankScaling, api.EpisodeInfo, first.state.at, t.To, false)
	ep.workloads = []name{th.named()}
	low, high := first.from, first.from
	turns := 0         // changes of direction
	var empty []string // how long it was at zero
	for i, s := range steps {
		ep.claims = append(ep.claims, claim(s.state)...)
		if s.event != nil {
			ep.claims = append(ep.claims, s.event.entry)
			ep.said = addCause(ep.said, s.event.cause())
		}
		low, high = min(low, s.to), max(high, s.to)
		after := next
		if i+1 < len(steps) {
			after = steps[i+1].state
		}
		if i > 0 && (s.to > s.from) != (steps[i-1].to > steps[i-1].from) {
			turns++
		}
		if s.to == 0 && after != nil {
			empty = append(empty, "for "+t.took(s.state.at, after.at))
		}
		if s.to == 0 || turns >= manyTurns {
			ep.Severity = api.EpisodeWarning
		}
	}
	title := fmt.Sprintf("%s %s scaled %d → %d", th.kind, th.key.Name(), first.from, last.to)
	mixed := slices.ContainsFunc(steps, func(s step) bool { return s.by != first.by })
	if len(steps) > 1 {
		title = fmt.Sprintf("%s %s scaled %d times between %d and %d replicas (%s)", th.kind, th.key.Name(), len(steps), low, high, path(steps, mixed))
	}
	if !mixed {
		title += first.by + reasons(steps)
	}
	switch {
	case !last.ready.IsZero():
		ep.To = last.ready
		if len(steps) == 1 && last.to > 0 {
			title += ", ready after " + t.took(ep.From, ep.To)
		}
	case next != nil:
		ep.To = next.at
		title += fmt.Sprintf(", %d of %d ready when it was scaled again", th.before(next).look().Status.ReadyReplicas, last.to)
	default:
		ep.To, ep.Ongoing = t.until(th, len(th.states)-1), th.gone.IsZero()
		title += fmt.Sprintf(", %d of %d ready", th.final().look().Status.ReadyReplicas, last.to)
	}
	if ep.atZero = last.to == 0 && next == nil && th.gone.IsZero(); ep.atZero && len(steps) > 1 {
		empty = append(empty, "for "+t.took(last.state.at, t.To)+" "+t.atEnd())
	}
	if ep.Title = title; empty != nil {
		ep.Title += "; at 0 " + strings.Join(empty, " and ")
	}
	n := notes{t: t}
	for _, hpa := range of {
		n.add(t.called(hpa), hpa, first.state.at, last.state.at, "")
	}
	n.tell(ep)
	ep.covers = func(e *entry) bool { return slices.Contains(of, e.thing) }
	t.add(ep)
}

// maxSteps limits the steps that a title has.
const maxSteps = 8

// path shows the numbers of replicas in order, if there are several authors with those of each.
func path(steps []step, mixed bool) string {
	text, from := fmt.Sprint(steps[0].from), 0
	for i, s := range steps[:min(len(steps), maxSteps)] {
		text += fmt.Sprintf(" → %d", s.to)
		if mixed && (i+1 == len(steps) || i+1 == maxSteps || steps[i+1].by != s.by) {
			text += s.by + reasons(steps[from:i+1])
			if from = i + 1; from < len(steps) {
				text += ","
			}
		}
	}
	if len(steps) > maxSteps {
		text += " → …"
	}
	return text
}

// reasons returns why an autoscaler made some steps, in parentheses.
func reasons(steps []step) string {
	var all []string
	for _, s := range steps {
		all = words.AppendOnce(all, s.reason)
	}
	if all = slices.DeleteFunc(all, func(s string) bool { return s == "" }); len(all) == 0 {
		return ""
	}
	return " (" + change.Brief(strings.Join(all, ", ")) + ")"
}

// autoscalers describes times in which an autoscaler could not decide, or was limited.
func (t *teller) autoscalers() {
	for _, hpa := range t.ofKind("HorizontalPodAutoscaler") {
		for _, typ := range []string{"ScalingActive", "AbleToScale"} {
			for _, span := range t.spansOf(hpa, typ, "False") {
				ep := newEpisode(rankAutoscaler, api.EpisodeWarning, span.from, span.to, span.open)
				ep.claims = span.claims
				verb := "cannot scale"
				if !span.open {
					verb = "could not scale for " + t.took(span.from, span.to) + map[bool]string{true: ", until it was deleted"}[span.after == nil]
				}
				ep.Title = fmt.Sprintf("HorizontalPodAutoscaler %s %s: %s", hpa.key.Name(), verb, span.condition.Brief())
				ep.said = addCause(nil, span.cause())
				ep.covers = func(e *entry) bool { return e.thing == hpa }
				t.add(ep)
			}
		}
	}
}

// A span is a time in which something is so of a thing.
type span struct {
	from, to    time.Time
	open        bool   // at the end of the span of the story
	first, last *state // with it
	after       *state // nil if there is none
	claims      []*entry
	condition   condition // in last, if it is about one
}

func (s span) cause() api.Cause { return s.last.because(s.condition) }

// spans returns the times in which something is so of a thing.
func (t *teller) spans(th *thing, is func(*state) bool) (all []span) {
	for i, s := range th.states {
		before := i > 0 && is(th.states[i-1])
		switch now := is(s); {
		case now && !before:
			all = append(all, span{from: s.at, first: s, claims: claim(s)})
			fallthrough
		case now:
			one := &all[len(all)-1]
			one.last, one.to, one.open = s, t.until(th, i), i == len(th.states)-1 && th.gone.IsZero()
		case before:
			one := &all[len(all)-1]
			one.after, one.claims = s, append(one.claims, claim(s)...)
		}
	}
	return all
}

// spansOf returns the times in which a condition of a thing has one of some statuses.
func (t *teller) spansOf(th *thing, typ string, bad ...string) []span {
	all := t.spans(th, func(s *state) bool {
		c, ok := s.condition(typ)
		return ok && slices.Contains(bad, c.Status)
	})
	for i := range all {
		all[i].condition, _ = all[i].last.condition(typ)
	}
	return all
}
