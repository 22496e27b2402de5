// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"

	"github.com/watchkeeper/watchkeeper/bench/fanout/tally"
)

// A row of the table is one figure, and what it is to be: 0 for no target.
type row struct {
	title       string
	key         string // of the figure: see tally.Tally.Median
	unit        string
	most, least float64
}

func rows(s sizes) []row {
	return []row{
		{title: fmt.Sprintf("%d Nodes, %d Pods: first full paint", s.nodes, s.pods), key: "Open s", unit: "s", most: 3},
		{title: "the same, of the first to open it on the gateway", key: "OpenFirst s", unit: "s"},
		{title: "CPU of that: the page's main thread", key: "Open main-s", unit: "s"},
		{title: "the gateway", key: "Open gateway-s", unit: "s"},
		{title: fmt.Sprintf("steady, %d changes/s: frames in a second", s.rate), key: "Steady fps", least: 58},
		{title: "95 of 100 frames within", key: "Steady p95-ms", unit: "ms"},
		{title: "99 of 100 frames within", key: "Steady p99-ms", unit: "ms"},
		{title: "main thread", key: "Steady main-%", unit: "%", most: 30},
		{title: "batches in a second", key: "Steady batches/s"},
		{title: "bytes on the wire per changed Pod", key: "Steady B/change", unit: "B", most: 300},
		{title: "bytes on the wire to open the page", key: "Open MB", unit: "MB"},
		{title: "memory of the renderer's process, at the end", key: "Memory last-MiB", unit: "MiB", most: 250},
		{title: "of that JavaScript, page and worker", key: "Memory js-MiB", unit: "MiB"},
		{title: "what it grows in an hour, by the second half of the samples", key: "Memory MiB/hour", unit: "MiB", most: 10},
		{title: fmt.Sprintf("scrubbing to another moment, %d Pods, median", s.pastPods), key: "Scrub p50-s", unit: "s", most: 0.5},
		{title: "the slowest", key: "Scrub most-s", unit: "s"},
	}
}

// table prints what has been measured, and returns how many targets were missed.
func table(w io.Writer, t *tally.Tally, rows []row) (missed int) {
	fmt.Fprintf(w, "| | measured | target | met |\n|---|---|---|---|\n")
	for _, r := range rows {
		v := t.Median(r.key)
		if math.IsNaN(v) {
			continue
		}
		target, says := "–", "–"
		if r.most > 0 || r.least > 0 {
			met := v <= r.most
			target = fmt.Sprintf("≤ %g", r.most)
			if r.least > 0 {
				met = v >= r.least
				target = fmt.Sprintf("≥ %g", r.least)
			}
			if says = "yes"; !met {
				says = "**no**"
				missed++
			}
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.title, figure(v, r.unit), target, says)
	}
	return missed
}

// figure prints about three digits.
func figure(v float64, unit string) string {
	text := fmt.Sprintf("%.3g", v)
	if math.Abs(v) >= 1000 || v == math.Trunc(v) {
		text = fmt.Sprintf("%.0f", v)
	}
	if unit != "" {
		text += " " + unit
	}
	return text
}
