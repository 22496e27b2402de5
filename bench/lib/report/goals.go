// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
	"runtime"
)

// A Goal is a row of a table without a comparison: one figure and its target.
type Goal struct {
	Title string
	Key   string  // of the figure (see Median)
	Than  string  // of the figure that it is divided by; "" is none
	Unit  string  // printed after the figure
	Scale float64 // factor from the measured unit to Unit; 0 means 1
	Max   float64 // the target, in the unit; 0 is none
	Min   float64
	Zero  bool // the target is 0
}

// Goals prints the rows with a measured figure, and returns the number of missed
// targets.
func (rep *Report) Goals(w io.Writer, goals []Goal) (missed int) {
	fmt.Fprintf(w, "| | measured | target | met |\n|---|---|---|---|\n")
	for _, g := range goals {
		v := rep.Median(g.Key)
		if g.Scale != 0 {
			v *= g.Scale
		}
		if g.Than != "" {
			v /= rep.Median(g.Than)
		}
		if math.IsNaN(v) {
			continue
		}
		target, met := g.target(v)
		says := "–"
		if target != "" {
			if says = "yes"; !met {
				says = "**no**"
				missed++
			}
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", g.Title, with(v, g.Unit), orDash(target), says)
	}
	return missed
}

// target returns the text of the target, and whether v meets it.
func (g Goal) target(v float64) (says string, met bool) {
	switch {
	case g.Zero:
		return "0", v == 0
	case g.Max > 0:
		return "≤ " + with(g.Max, g.Unit), v <= g.Max
	case g.Min > 0:
		return "≥ " + with(g.Min, g.Unit), v >= g.Min
	}
	return "", true
}

// Header prints the machine, as Go's benchmarks do, and the settings of a benchmark.
func Header(w io.Writer, rounds int, quick bool) {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\ncpus: %d\nrounds: %d\nquick: %v\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds, quick)
}
