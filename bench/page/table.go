// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

// goals returns the rows of the table.
func goals(s sizes) []report.Goal {
	return []report.Goal{
		{Title: fmt.Sprintf("%d Nodes, %d Pods: first full paint", s.nodes, s.pods), Key: "Open s", Unit: "s", Max: 2.5},
		{Title: "the same, the first time on a gateway", Key: "OpenFirst s", Unit: "s"},
		{Title: "CPU of the first full paint: the page's main thread", Key: "Open main-s", Unit: "s"},
		{Title: "the gateway", Key: "Open gateway-s", Unit: "s"},
		{Title: fmt.Sprintf("steady, %d changes/s: frames in a second", s.rate), Key: "Steady fps", Min: 58},
		{Title: "95 of 100 frames within", Key: "Steady p95-ms", Unit: "ms"},
		{Title: "99 of 100 frames within", Key: "Steady p99-ms", Unit: "ms"},
		{Title: "main thread", Key: "Steady main-%", Unit: "%", Max: 30},
		{Title: "batches in a second", Key: "Steady batches/s"},
		{Title: "bytes on the wire per changed Pod", Key: "Steady B/change", Unit: "B", Max: 300},
		{Title: "bytes on the wire to open the page", Key: "Open MB", Unit: "MB"},
		{Title: "memory of the renderer's process, at the end", Key: "Memory last-MiB", Unit: "MiB", Max: 250},
		{Title: "of this, JavaScript of page and worker", Key: "Memory js-MiB", Unit: "MiB"},
		{Title: "growth of this memory per hour, from the second half of the samples", Key: "Memory MiB/hour", Unit: "MiB", Max: 10},
		{Title: fmt.Sprintf("a table of %d Pods, %d changes/s, scrolled: frames in a second", s.tablePods, s.tableRate), Key: "Table fps", Min: 58},
		{Title: "99 of 100 frames within", Key: "Table p99-ms", Unit: "ms"},
		{Title: "main thread", Key: "Table main-%", Unit: "%"},
		{Title: "all objects received after", Key: "Table s", Unit: "s"},
		{Title: fmt.Sprintf("a spreadsheet of %d rows and 20 columns, %d changes/s: from the arrival of a change until it is painted, median", s.sheetPods, s.tableRate), Key: "Sheet p50-ms", Unit: "ms", Max: 50},
		{Title: "99 of 100 within", Key: "Sheet p99-ms", Unit: "ms", Max: 50},
		{Title: "main thread", Key: "Sheet main-%", Unit: "%"},
		{Title: "all objects received after", Key: "Sheet s", Unit: "s"},
		{Title: fmt.Sprintf("scrubbing to another moment, %d Pods, %d changes/s, median", s.pastPods, s.tableRate), Key: "Scrub p50-s", Unit: "s", Max: 0.25},
		{Title: "the slowest", Key: "Scrub most-s", Unit: "s"},
		{Title: fmt.Sprintf("scrubbing with %g changes/s, median", s.busyRate()), Key: "ScrubBusy p50-s", Unit: "s"},
		{Title: "the slowest", Key: "ScrubBusy most-s", Unit: "s"},
	}
}
