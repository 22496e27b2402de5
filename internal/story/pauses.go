// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/change"
)

// suspensions describes the times in which a CronJob or a Job was suspended.
func (t *teller) suspensions() {
	for _, th := range t.ofKind("CronJob", "Job") {
		for _, span := range t.spans(th, func(s *state) bool { return s.look().Spec.Suspend }) {
			ep := newEpisode(rankConfig, api.EpisodeInfo, span.from, span.to, span.open)
			ep.claims, ep.said = span.claims, span.first.since("spec.suspend", "true")
			ep.Title = fmt.Sprintf("%s %s suspended%s", th.kind, th.key.Name(), span.first.entry.by())
			if span.after != nil {
				ep.Title += fmt.Sprintf("; resumed%s after %s", span.after.entry.by(), t.took(ep.From, ep.To))
			}
			t.add(ep)
		}
	}
}

// pauses describes the times in which a Deployment was paused, and what was changed meanwhile:
// that is rolled out when it is resumed.
func (t *teller) pauses() {
	paused := func(s *state) bool { return s.look().Spec.Paused }
	for _, th := range t.ofKind("Deployment") {
		for _, span := range t.spans(th, paused) {
			ep := newEpisode(rankConfig, api.EpisodeInfo, span.from, span.to, span.open)
			ep.Kind, ep.claims, ep.said = api.EpisodeRollout, span.claims, span.first.since("spec.paused", "true")
			ep.Title = fmt.Sprintf("rollouts of %s paused%s", th.key.Name(), span.first.entry.by())
			var edits []string
			for i, s := range th.states {
				if s != span.first && paused(s) && within(s.at, span.from, span.to) && s.entry != nil && !s.entry.onlyStatus && generationOf(th, i) != generationOf(th, i-1) {
					edits = append(edits, s.entry.with(change.Shortened(s.entry.What)...))
					ep.claims = append(ep.claims, s.entry)
				}
			}
			if edits != nil {
				ep.Title += "; changed meanwhile: " + change.Brief(strings.Join(edits, "; "))
			}
			switch {
			case span.after != nil:
				ep.Title += fmt.Sprintf("; resumed%s after %s", span.after.entry.by(), t.took(ep.From, ep.To))
			case !span.open:
				ep.Title += ", until deleted"
			case edits != nil:
				ep.Title += "; rolled out when it is resumed"
			}
			t.add(ep)
		}
	}
}
