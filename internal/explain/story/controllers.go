// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/edges"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// creations describes times in which a controller could not create Pods: a quota or an admission
// controller refused them.
func (t *teller) creations() {
	for _, th := range t.things {
		var spans []span
		if th.kind == "ReplicaSet" || th.kind == "ReplicationController" {
			spans = t.spansOf(th, "ReplicaFailure", "True")
		}
		refused := t.eventsAbout(th, t.From, t.To, "FailedCreate", "FailedDaemonPod")
		if len(spans) == 0 && len(refused) > 0 { // controllers without that condition
			first, last := refused[0].entry, refused[len(refused)-1].entry
			span := span{from: first.Time, to: last.Time, condition: condition{Reason: refused[0].Reason, Message: refused[len(refused)-1].Text()}}
			span.to = edges.Later(span.to, last.Until)
			for _, one := range t.spans(th, func(s *state) bool { return s.look().Lacks() }) { // the last Event is not its end, but the next Pod is
				if one.from.After(span.to.Add(maxTogether)) || !one.to.After(span.to) {
					continue
				}
				end, open := one.to, one.open
				for _, pod := range t.ofKind("Pod") {
					if begin, created := pod.begin(); created && pod.controlledBy(th.uid) && begin.After(span.to) && begin.Before(end) {
						end, open = begin, false
					}
				}
				span.to, span.open = end, open
			}
			spans = append(spans, span)
		}
		for _, span := range spans {
			t.tellCreation(th, span, refused)
		}
	}
}

func (t *teller) tellCreation(th *thing, span span, refused []*event) {
	wl := t.workload(th)
	for _, ep := range t.episodes {
		same := func(c said) bool {
			return c.Cause.Path == th.resource.ObjectPath(th.key) && strings.HasSuffix(c.Field, "[ReplicaFailure]")
		}
		if ep.rank == rankRollout && slices.ContainsFunc(ep.said, same) && within(span.from, ep.From, ep.To) {
			ep.claims = append(ep.claims, span.claims...)
			return // described there
		}
	}
	ep := newEpisode(rankCreation, api.EpisodeFailed, span.from, span.to, span.open)
	ep.claims = span.claims
	message := change.Unnamed(change.Because(span.condition.Message))
	if span.condition.Type != "" {
		ep.said = addCause(nil, span.cause())
	}
	for _, ev := range refused {
		if within(ev.entry.Time, ep.From.Add(-5*time.Second), ep.To.Add(maxTrail)) {
			ep.claims = append(ep.claims, ev.entry)
			ep.said = addCause(ep.said, ev.cause())
			if message == "" {
				message = change.Unnamed(ev.Text())
			}
		}
	}
	ep.covers = func(e *entry) bool { return e.Kind == "ResourceQuota" && e.counters }
	ep.Title, ep.workloads = fmt.Sprintf("%s: Pods could not be created: %s", wl, change.Brief(message)), []name{wl}
	n := t.quotaChanges(message, ep.From, ep.To)
	n.tell(ep)
	if !span.open {
		ep.Title += "; over after " + t.took(span.from, span.to)
	}
	t.add(ep)
}

// jobs describes Jobs that failed or completed.
func (t *teller) jobs() {
	for _, job := range t.ofKind("Job") {
		from, created := job.begin()
		for _, end := range []struct{ typ, verb, severity string }{{"Failed", "failed", api.EpisodeFailed}, {"Complete", "complete", api.EpisodeInfo}} {
			spans := t.spansOf(job, end.typ, "True")
			if len(spans) == 0 {
				continue
			}
			span := spans[0]
			ep := newEpisode(rankJob, end.severity, from, span.from, false)
			ep.Title, ep.claims = fmt.Sprintf("Job %s %s", job.key.Name(), end.verb), span.claims
			if end.severity == api.EpisodeFailed {
				ep.said = addCause(nil, span.cause())
				ep.Title += ": " + span.condition.Brief()
			}
			for _, f := range t.failures { // those of its Pods end with it
				begin, _, _ := t.edges.Bounds(f.from) // its end may be seen before, in the same gap
				switch {
				case !f.pod.controlledBy(job.uid) || begin.After(ep.To):
				case end.severity == api.EpisodeFailed || span.first.initial:
					f.described = true
					ep.said, ep.claims = addCause(ep.said, f.fault.cause), append(ep.claims, f.claims...)
				case !f.ended:
					f.to, f.ended, f.next = edges.Later(f.from, ep.To), true, "its Job completed"
				}
			}
			if span.first.initial {
				continue // it had ended before
			}
			if created {
				ep.Title += " after " + t.took(from, ep.To)
			}
			ep.covers = func(e *entry) bool { return e.thing == job || e.thing != nil && e.thing.controlledBy(job.uid) }
			t.add(ep)
		}
	}
}

// laterJobs says in the first line of a CronJob's story, if that is about a Job, what came of the later ones.
func (t *teller) laterJobs(ep *episode) (text string) {
	failed := 0
	for _, later := range t.all {
		if later.rank == rankJob && later.From.After(ep.From) {
			bad := later.Severity == api.EpisodeFailed
			failed, text = failed+one(bad), "; the last Job "+map[bool]string{true: "failed", false: "was complete"}[bad]
		}
	}
	if failed > 0 {
		text = "; " + words.Count(failed, "more Job") + " failed" + text
	}
	return text
}

// configKinds are the kinds of objects that configure others, or limit them.
var configKinds = []string{"ConfigMap", "Secret", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "PriorityClass", "HorizontalPodAutoscaler", "CronJob"}

// config describes changes of configuration: which keys, never their values. That of a Node is its labels.
func (t *teller) config() {
	for _, th := range t.ofKind(append([]string{"Node"}, configKinds...)...) {
		entries := slices.DeleteFunc(th.entries(), func(e *entry) bool {
			labels := e.state != nil && e.state != th.states[0] && !maps.Equal(e.state.look().Metadata.Labels, th.before(e.state).look().Metadata.Labels)
			return e.onlyStatus || th.kind == "Node" && !labels || t.claimed(e)
		})
		for _, run := range words.Runs(entries, func(a, b *entry) bool { return b.Time.Sub(a.Time) > maxTogether }) {
			ep := newEpisode(rankConfig, api.EpisodeInfo, run[0].Time, run[len(run)-1].Time, false)
			ep.claims = run
			var what []string
			for _, e := range run {
				what = words.AppendOnce(what, change.Brief(strings.Join(e.What, "; "))+e.by())
			}
			ep.Title = fmt.Sprintf("%s %s: %s", th.kind, th.key.Name(), strings.Join(what, "; "))
			t.add(ep)
		}
	}
}

// pauses describes the times in which a CronJob or a Job was suspended, or a Deployment paused, and what
// was changed of that meanwhile: it is rolled out when it is resumed.
func (t *teller) pauses() {
	paused := func(s *state) bool { return s.look().Spec.Paused || s.look().Spec.Suspend }
	for _, th := range t.ofKind("Deployment", "CronJob", "Job") {
		for _, span := range t.spans(th, paused) {
			ep := newEpisode(rankConfig, api.EpisodeInfo, span.from, span.to, span.open)
			ep.claims, ep.said = span.claims, span.first.since("spec.suspend", "true")
			ep.Title = fmt.Sprintf("%s %s suspended%s", th.kind, th.key.Name(), span.first.entry.by())
			var edits []string
			if th.kind == "Deployment" {
				ep.Kind, ep.said = api.EpisodeRollout, span.first.since("spec.paused", "true")
				ep.Title = fmt.Sprintf("rollouts of %s paused%s", th.key.Name(), span.first.entry.by())
				for i, s := range th.states {
					if s != span.first && paused(s) && within(s.at, span.from, span.to) && s.entry != nil && !s.entry.onlyStatus && generationOf(th, i) != generationOf(th, i-1) {
						edits = append(edits, s.entry.with(change.Shortened(s.entry.What)...))
						ep.claims = append(ep.claims, s.entry)
					}
				}
			}
			if edits != nil {
				ep.Title += "; changed meanwhile: " + change.Brief(strings.Join(edits, "; "))
			}
			switch {
			case span.after != nil:
				ep.Title += fmt.Sprintf("; resumed%s after %s", span.after.entry.by(), t.took(ep.From, ep.To))
			case !span.open && th.kind == "Deployment":
				ep.Title += ", until deleted"
			case span.open && edits != nil:
				ep.Title += "; rolled out when it is resumed"
			}
			t.add(ep)
		}
	}
}
