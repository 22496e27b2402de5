// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package spans joins times that overlap: an outage is a gap of each resource.
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
