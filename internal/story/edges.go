// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/words"
)

// An edge is the end of a time that was not observed. What is first seen at an edge was so at
// some time before it.
type edge struct {
	notBefore time.Time // since when it may have been so; zero if that is not known
	before    string    // [api.StoryBegin] or [api.RecordBegin] then
}

// edge remembers that nothing was observed for a while until a time.
func (t *teller) edge(at time.Time, e edge) {
	if old, ok := t.edges[at.UnixNano()]; !ok || !old.notBefore.IsZero() && e.notBefore.Before(old.notBefore) {
		t.edges[at.UnixNano()] = e
	}
}

// bounds returns between which times something was that is first seen at a time. Without a begin,
// it was at any time before.
func (t *teller) bounds(at time.Time) (begin, end time.Time, hasBegin bool) {
	if e, ok := t.edges[at.UnixNano()]; ok {
		return e.notBefore, at, !e.notBefore.IsZero()
	}
	return at, at, true
}

// order compares when two states began: it is 0 if that is not known. In a time that was not observed,
// their resourceVersions say it; that of a state which a list found may be of a later change.
func (t *teller) order(a, b *state) int {
	earliestA, latestA, _ := t.bounds(a.at)
	earliestB, latestB, _ := t.bounds(b.at)
	listed := func(s *state) bool { return s.initial || s.entry != nil && s.entry.Inferred }
	switch {
	case latestA.Before(earliestB), latestB.Before(earliestA):
		return a.at.Compare(b.at)
	case a.o.RV > b.o.RV && listed(a), a.o.RV < b.o.RV && listed(b):
		return 0
	}
	return cmp.Compare(a.o.RV, b.o.RV)
}

// took formats how long it was from a time to another, as far as that is known.
func (t *teller) took(from, to time.Time) string {
	earliest, latest, limited := t.bounds(from)
	first, last, ok := t.bounds(to)
	if !ok || first.Before(latest) {
		first = latest
	}
	// In seconds as they are printed.
	between := func(from, to time.Time) time.Duration {
		return to.Truncate(time.Second).Sub(from.Truncate(time.Second))
	}
	least, most := between(latest, first), between(earliest, last)
	switch {
	case limited && least == most:
		return words.Duration(least)
	case limited && least < time.Second:
		return "at most " + words.Duration(most)
	case limited:
		return words.Duration(least) + " to " + words.Duration(most)
	case least < time.Second:
		return "an unknown time"
	}
	return "at least " + words.Duration(least)
}

// observed adds to an episode how its begin and its end are known.
func (t *teller) observed(ep *api.Episode) {
	if e, ok := t.edges[ep.From.UnixNano()]; ok {
		ep.BegunBefore, ep.NotBefore = e.before, e.notBefore.UTC()
	}
	if e, ok := t.edges[ep.To.UnixNano()]; ok && !ep.Ongoing && !e.notBefore.IsZero() {
		if ep.EndNotBefore = e.notBefore.UTC(); ep.EndNotBefore.Before(ep.From) && !ep.From.Equal(ep.To) {
			ep.EndNotBefore = ep.From
		}
	}
}
