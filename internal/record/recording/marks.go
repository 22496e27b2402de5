// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"slices"

	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// A mark is a line that precedes the events above an RV.
type mark struct {
	rv   uint64
	line line
}

// marks returns the gaps and the steps of the clock within the selected time, in
// order.
func (p *part) marks() (all []mark) {
	for _, s := range p.stream.ClockSteps() {
		if s.RV >= p.from.RV && s.RV <= p.to.RV {
			all = append(all, mark{s.RV, line{Step: &stepLine{s.RV, s.From.UTC(), s.To.UTC()}}})
		}
	}
	for _, g := range p.stream.Gaps() {
		// A gap in which nothing changed may be before the begin, or after the end, at its RV.
		outside := len(p.stream.ClockSteps()) == 0 && (!g.Until.After(p.from.At) || g.Until.After(p.to.At))
		if g.From >= p.from.RV && g.To <= p.to.RV && !outside {
			all = append(all, mark{g.From, line{Gap: &gapLine{momentLine{g.From, g.Since.UTC()}, momentLine{g.To, g.Until.UTC()}}}})
		}
	}
	slices.SortStableFunc(all, func(a, b mark) int { return cmp.Compare(a.rv, b.rv) }) // a step before the gap that it begins
	return all
}

func moment(m history.Moment) momentLine { return momentLine{m.RV, m.At.UTC()} }
