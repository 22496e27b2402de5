// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	benchreport "github.com/watchkeeper/watchkeeper/bench/lib/report"
)

const mega = 1e6

type value = benchreport.Value

// A report collects the measurements of all programs.
type report struct {
	*benchreport.Report
	values map[string][]float64 // by program and unit
}

func newReport(out io.Writer) *report {
	return &report{benchreport.New(out), map[string][]float64{}}
}

func (r *report) add(program string, values ...value) {
	r.Add("Widget/controller="+program, 1, values...)
	for _, v := range values {
		key := program + " " + v.Unit
		r.values[key] = append(r.values[key], v.Of)
	}
}

// rows are those of the table.
var rows = []struct {
	title, unit string
	digits      int
	ranged      bool // the smallest and the largest value follow
}{
	{"lines of the controller", "lines", 0, false},
	{"lines of the type", "type-lines", 0, false},
	{"binary, MB", "binary-MB", 1, false},
	{"start: a new Widget reconciled, s", "ready-s", 1, false},
	{"start: CPU until idle, s", "cpu-s", 2, false},
	{"live heap, MB", "heap-MB", 1, false},
	{"RSS, idle, MB", "rss-MB", 0, false},
	{"RSS, peak, MB", "peak-MB", 0, false},
	{"RSS, peak with the outage, MB", "peak-with-outage-MB", 0, false},
	{"changes reconciled after the outage, s", "reconciled-s", 1, true},
}

// table prints the medians of all programs side by side.
func (r *report) table(w io.Writer) {
	var titles []string
	for _, p := range programs {
		titles = append(titles, p.title)
	}
	fmt.Fprintf(w, "\n| | %s |\n|---%s|\n", strings.Join(titles, " | "), strings.Repeat("|---:", len(programs)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |", row.title)
		for _, p := range programs {
			values := r.values[p.name+" "+row.unit]
			fmt.Fprintf(w, " %.*f", row.digits, benchreport.Median(values))
			if row.ranged && len(values) > 1 {
				fmt.Fprintf(w, " (%.*f–%.*f)", row.digits, slices.Min(values), row.digits, slices.Max(values))
			}
			fmt.Fprint(w, " |")
		}
		fmt.Fprintln(w)
	}
}
