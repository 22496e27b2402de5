// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package edges says how long things took, as far as that is known: what is first seen at the end of a
// time that was not observed was so at some time in it.
package edges

import (
	"time"

	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// An Edge is the end of a time that was not observed.
type Edge struct {
	NotBefore time.Time // since when what is first seen there may have been so; zero if that is not known
	Before    string    // api.StoryBegin or api.RecordBegin then
}

// Edges are those of a story, by the time in nanoseconds. They are read-only once all are added.
type Edges map[int64]Edge

// Add remembers that nothing was observed for a while until a time.
func (all Edges) Add(at time.Time, e Edge) {
	if old, ok := all[at.UnixNano()]; !ok || !old.NotBefore.IsZero() && e.NotBefore.Before(old.NotBefore) {
		all[at.UnixNano()] = e
	}
}

// Bounds returns between which times something was that is first seen at a time. Without a begin,
// it was at any time before.
func (all Edges) Bounds(at time.Time) (begin, end time.Time, hasBegin bool) {
	if e, ok := all[at.UnixNano()]; ok {
		return e.NotBefore, at, !e.NotBefore.IsZero()
	}
	return at, at, true
}

// Took formats how long it was from a time to another, as far as that is known.
func (all Edges) Took(from, to time.Time) string {
	earliest, latest, limited := all.Bounds(from)
	first, last, ok := all.Bounds(to)
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

// Later returns the later one of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Earlier returns the earlier one of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
