// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package spans joins times that overlap, as an outage is a gap of each resource, and counts them.
package spans

import (
	"slices"
	"time"
)

// A Span is a time, and what joined in it.
type Span[T any] struct {
	From, To time.Time
	Of       []T // the one that begins first is the first
}

// Join returns the times of some elements, the earliest first. Those that overlap, or that follow
// each other at once, are one.
func Join[T any](all []T, bounds func(T) (from, to time.Time)) (joined []Span[T]) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b T) int {
		from, _ := bounds(a)
		other, _ := bounds(b)
		return from.Compare(other)
	})
	for _, one := range all {
		from, to := bounds(one)
		last := len(joined) - 1
		if last < 0 || from.After(joined[last].To) {
			joined = append(joined, Span[T]{from, to, []T{one}})
			continue
		}
		joined[last].Of = append(joined[last].Of, one)
		if to.After(joined[last].To) {
			joined[last].To = to
		}
	}
	return joined
}

// Counts are how many of some times there are, in the order of the moments from which on that is so.
type Counts []Count

// A Count is how many times there are from a moment on.
type Count struct {
	From time.Time
	N    int
}

// Counted counts times. Each is without its end; a zero end is none.
func Counted(all ...[2]time.Time) (counts Counts) {
	for _, one := range all {
		counts = append(counts, Count{one[0], 1})
		if !one[1].IsZero() {
			counts = append(counts, Count{one[1], -1})
		}
	}
	slices.SortFunc(counts, func(a, b Count) int { return a.From.Compare(b.From) })
	n, last := 0, 0
	for _, c := range counts {
		if n += c.N; last > 0 && counts[last-1].From.Equal(c.From) {
			last--
		}
		counts[last] = Count{c.From, n}
		last++
	}
	return counts[:last]
}

// Within returns the counts of the moments from a time on, and before another; the first may be from
// earlier.
func (c Counts) Within(from, to time.Time) Counts {
	first, found := slices.BinarySearchFunc(c, from, func(c Count, at time.Time) int { return c.From.Compare(at) })
	last, _ := slices.BinarySearchFunc(c, to, func(c Count, at time.Time) int { return c.From.Compare(at) })
	if !found && first > 0 {
		first--
	}
	return c[first:max(first, last)]
}

// At returns how many times there are at a moment.
func (c Counts) At(at time.Time) int {
	if of := c.Within(at, at.Add(1)); len(of) > 0 {
		return of[0].N
	}
	return 0
}
