// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"

	"github.com/watchkeeper/watchkeeper/bench/fanout/tally"
)

// A row of the table is one figure, and what it is to be.
type row struct {
	title string
	key   string // of the figure: see tally.Tally.Median
	than  string // of one that it is divided by, "" for none
	unit  string
	scale float64 // what it is multiplied with to be in the unit
	most  float64 // targets, in the unit; 0 is none
	least float64
	none  bool // it is to be 0
}

const (
	second = 1e-9
	milli  = 1e-6
	micro  = 1e-3
	mega   = 1e-6
)

func rows(s sizes) []row {
	latency := func(record bool, rate float64, unit string) string {
		return fmt.Sprintf("Latency/%s/rate=%.0f %s", on(record), rate, unit)
	}
	all := []row{
		{title: fmt.Sprintf("events recorded in a second, of %.0f", s.rate), key: "Ingest events/s", scale: 1, least: 30_000},
		{title: "gaps in it", key: "Ingest gaps", scale: 1, none: true},
		{title: "CPU per event recorded, all of the gateway's", key: "Ingest cpu-ns/event", unit: "µs", scale: micro},
		{title: "memory of the gateway behind it (RSS)", key: "Ingest rss-B", unit: "MB", scale: mega},
		{title: "disk per event, compacted", key: "Disk B/event", unit: "B", scale: 1, most: 150},
		{title: "disk per event, as the gateway left it", key: "Disk uncompacted-B/event", unit: "B", scale: 1},
		{title: fmt.Sprintf("LIST of %d Pods at a past moment, JSON", s.pods), key: "ListPast/form=json ns/op", unit: "s", scale: second, most: 0.5},
		{title: "the same, Table", key: "ListPast/form=table ns/op", unit: "s", scale: second},
		{title: "the same, in the store alone", key: "ListPast/form=store ns/op", unit: "s", scale: second},
		{title: fmt.Sprintf("versions of one object among %d events", s.events), key: "Versions/of=http ns/op", unit: "ms", scale: milli, most: 20},
		{title: "the same, in the store alone", key: "Versions/of=store ns/op", unit: "ms", scale: milli},
		{title: fmt.Sprintf("restart with %d objects: until they are served", s.many), key: "Restart serving-ns", unit: "s", scale: second, most: 3},
		{title: fmt.Sprintf("until a watch has the %d events from before", s.resumed), key: "Restart resumed-ns", unit: "s", scale: second},
		{title: "lists upstream", key: "Restart lists", scale: 1, none: true},
		{title: "events replayed to a watch in a second", key: "Replay/of=http events/s", scale: 1, least: 100_000},
		{title: "the same, in the store alone", key: "Replay/of=store events/s", scale: 1},
	}
	for _, rate := range []float64{s.slow, 10 * s.slow} {
		for _, p := range []string{"p50-ms", "p99-ms"} {
			title := fmt.Sprintf("latency added, %.0f events/s, %s", rate, p[:3])
			all = append(all,
				row{title: title + ", without recording", key: latency(false, rate, p), unit: "ms", scale: 1},
				row{title: title + ", with it", key: latency(true, rate, p), unit: "ms", scale: 1},
				row{title: title + ", with to without", key: latency(true, rate, p), than: latency(false, rate, p), scale: 1, most: 1.25})
		}
		all = append(all, row{title: fmt.Sprintf("CPU per event, %.0f events/s, with recording to without", rate), key: latency(true, rate, "cpu-ns/event"), than: latency(false, rate, "cpu-ns/event"), scale: 1})
	}
	return all
}

// table prints what has been measured, and returns how many targets were missed.
func table(w io.Writer, t *tally.Tally, rows []row) (missed int) {
	fmt.Fprintf(w, "| | measured | target | met |\n|---|---|---|---|\n")
	for _, r := range rows {
		v := t.Median(r.key) * r.scale
		if r.than != "" {
			v /= t.Median(r.than)
		}
		if math.IsNaN(v) {
			continue
		}
		target, met := "–", true
		switch {
		case r.none:
			target, met = "0", v == 0
		case r.most > 0:
			target, met = fmt.Sprintf("≤ %g", r.most), v <= r.most
		case r.least > 0:
			target, met = fmt.Sprintf("≥ %.0f", r.least), v >= r.least
		}
		says := "–"
		if target != "–" {
			if says = "yes"; !met {
				says = "**no**"
				missed++
			}
			if r.unit != "" {
				target += " " + r.unit
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
