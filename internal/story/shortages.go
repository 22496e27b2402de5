// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// shortages describes workloads that have fewer ready Pods than they should at the end of the
// story, if no other episode that is not over does: their Pods may be replaced, or not known.
func (t *teller) shortages() {
	for _, th := range t.ofKind("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet") {
		from, first := t.shortSince(th)
		told := slices.ContainsFunc(t.episodes, func(ep *episode) bool {
			return ep.Ongoing && (ep.bad() || ep.Kind == api.EpisodeRollout || ep.Kind == api.EpisodeScaling) && slices.Contains(ep.workloads, th.named())
		})
		if first == nil || told || th.kind == "ReplicaSet" && th.controller() != nil || t.To.Sub(from) < maxTrail {
			continue
		}
		ep := &episode{rank: rankFailure}
		ep.Kind, ep.Severity, ep.From, ep.To, ep.Ongoing = api.EpisodeFailure, api.EpisodeWarning, from, t.To, true
		ep.Title = fmt.Sprintf("%s: too few Pods are ready", t.called(th))
		if first.initial {
			ep.Title += "; began before " + stamp(t.From)
		}
		if c, ok := th.final().condition("Available"); ok && c.Status == "False" {
			ep.Severity = api.EpisodeFailed
			ep.said = addCause(nil, api.Cause{Kind: th.kind, Namespace: th.key.Namespace(), Name: th.key.Name(), Field: "status.conditions[Available]", Text: c.says()})
		}
		ep.own = th.resource == t.Resource && th.key == t.Key
		ep.claims, ep.workloads = claim(first), []name{th.named()}
		t.add(ep)
	}
}

// shortSince returns the state since which fewer Pods of a workload are ready than should be; nil
// if enough are at the end of the story. That they were for a moment does not count.
func (t *teller) shortSince(th *thing) (from time.Time, first *state) {
	if !th.gone.IsZero() {
		return from, nil
	}
	for _, s := range slices.Backward(th.states) {
		switch ready, want := readyOf(s); {
		case ready < want:
			from, first = s.at, s
		case first == nil || from.Sub(s.at) >= maxTrail:
			return from, first
		}
	}
	return from, first
}
