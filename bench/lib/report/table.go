// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
)

// A Row compares a figure of the gateway with the API server's. If it has a target, less
// is better, unless AtLeast is set.
type Row struct {
	Title string
	// Direct and Gateway are keys of figures (see Median). Direct is "" if the API
	// server has no such figure.
	Direct, Gateway string
	// Beside names what Direct is a figure of; "" is the API server.
	Beside string
	// Unit is printed after the figures. Scale is the factor from the measured unit
	// to Unit; 0 means 1.
	Unit  string
	Scale float64
	// Target is the maximum of Gateway: in proportion to Direct or, if Absolute is
	// set, in Unit. 0 means that there is no target.
	Target   float64
	Absolute bool
	// AtLeast makes Target the minimum of Gateway.
	AtLeast bool
	// Says is the text of the target.
	Says string
}

// Table prints the rows with a measured figure of the gateway, and returns the number
// of missed targets.
func (rep *Report) Table(w io.Writer, rows []Row) (missed int) {
	fmt.Fprintf(w, "| | kube-apiserver | gateway | ratio | target | met |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		gateway, direct := rep.Median(r.Gateway), rep.Median(r.Direct)
		if math.IsNaN(gateway) {
			continue
		}
		if r.Scale != 0 {
			gateway, direct = gateway*r.Scale, direct*r.Scale
		}
		met := "–"
		if r.Target != 0 {
			measured := gateway / direct
			if direct <= 0 { // too little to be measured, so nothing can be compared with it
				measured = math.NaN()
			}
			if r.Absolute {
				measured = gateway
			}
			if met = "yes"; r.AtLeast && !(measured >= r.Target) || !r.AtLeast && !(measured <= r.Target) { // NaN is a miss
				met = "**no**"
				missed++
			}
		}
		first := with(direct, r.Unit)
		if r.Beside != "" {
			first += " (" + r.Beside + ")"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", r.Title, first, with(gateway, r.Unit), ratio(gateway, direct), orDash(r.Says), met)
	}
	return missed
}

// Without returns the keys of figures in the rows that were not measured.
func (rep *Report) Without(rows []Row) (keys []string) {
	for _, r := range rows {
		for _, key := range []string{r.Direct, r.Gateway} {
			if key != "" && len(rep.figures[key]) == 0 {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// ratio formats the ratio of two figures. It formats a ratio below 1 as a fraction, as
// targets are.
func ratio(gateway, direct float64) string {
	v := gateway / direct
	switch {
	case !(direct > 0):
		return "–"
	case v <= 0:
		return "0"
	case v < 0.95:
		return "1/" + format(1/v)
	}
	return format(v)
}

func with(v float64, unit string) string {
	if math.IsNaN(v) {
		return "–"
	}
	if unit == "" {
		return format(v)
	}
	return format(v) + " " + unit
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
