// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// jobs tells of Jobs that failed or completed.
func (t *teller) jobs() {
	for _, job := range t.ofKind("Job") {
		from, created := job.begin()
		for _, end := range []struct{ typ, verb, severity string }{{"Failed", "failed", api.EpisodeFailed}, {"Complete", "complete", api.EpisodeInfo}} {
			spans := t.spansOf(job, end.typ, "True")
			if len(spans) == 0 || !spans[0].known {
				continue
			}
			span := spans[0]
			ep := &episode{rank: rankJob}
			ep.Kind, ep.Severity, ep.From, ep.To = api.EpisodeJob, end.severity, from, span.from
			ep.Title = fmt.Sprintf("Job %s %s", job.key.Name(), end.verb)
			if end.severity == api.EpisodeFailed {
				ep.said = addCause(nil, span.cause(job))
				ep.Title += ": " + span.condition.brief()
				for _, f := range t.failures {
					if c := f.pod.controller(); c != nil && string(c.UID) == job.uid {
						ep.said = addCause(ep.said, f.fault.cause)
					}
				}
			}
			if created {
				ep.Title += " after " + took(from, ep.To)
			}
			ep.claims = span.claims
			ep.covers = func(e *entry) bool {
				if e.thing == nil {
					return false
				}
				c := e.thing.controller()
				return e.thing == job || c != nil && string(c.UID) == job.uid
			}
			t.add(ep)
		}
	}
}
