// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package report collects the figures of a benchmark, prints them as Go benchmark
// lines, and prints tables of medians, in which a gateway is compared with its API
// server or with a target.
package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A Report collects figures. It is not safe for concurrent use.
type Report struct {
	out     io.Writer
	figures map[string][]float64 // by name and unit
}

// New returns a Report that prints the benchmark lines to out.
func New(out io.Writer) *Report { return &Report{out: out, figures: map[string][]float64{}} }

// A Value is one figure of a measurement.
type Value struct {
	Of   float64
	Unit string
}

// Add adds a measurement of n operations and prints its line. The name does not begin
// with "Benchmark".
func (rep *Report) Add(name string, n int, values ...Value) {
	var b strings.Builder
	fmt.Fprintf(&b, "Benchmark%s %d", name, n)
	for _, v := range values {
		key := name + " " + v.Unit
		rep.figures[key] = append(rep.figures[key], v.Of)
		fmt.Fprintf(&b, " %s %s", format(v.Of), v.Unit)
	}
	fmt.Fprintln(rep.out, b.String())
}

// Median returns the median of a figure, NaN without a measurement. The key is the
// name, a space and the unit.
func (rep *Report) Median(key string) float64 { return Median(rep.figures[key]) }

// Median returns the median of values, NaN without values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Percentile returns the smallest value that at least p percent of the values do not
// exceed, NaN without values. It sorts the values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	rank := int(math.Ceil(p / 100 * float64(len(values))))
	return values[max(rank, 1)-1]
}

// format prints a figure with about four digits.
func format(v float64) string {
	switch abs := math.Abs(v); {
	case v == math.Trunc(v) || abs >= 1000:
		return fmt.Sprintf("%.0f", v)
	case abs >= 10:
		return fmt.Sprintf("%.1f", v)
	case abs >= 0.1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
