// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

const (
	second = 1e-9
	milli  = 1e-6
	micro  = 1e-3
	mega   = 1e-6
)

// goals returns the rows of the table.
func goals(s sizes) []report.Goal {
	latency := func(record bool, rate float64, unit string) string {
		return fmt.Sprintf("Latency/%s/rate=%.0f %s", on(record), rate, unit)
	}
	all := []report.Goal{
		{Title: fmt.Sprintf("events recorded in a second, of %.0f", s.rate), Key: "Ingest events/s", Min: 30_000},
		{Title: "gaps in their record", Key: "Ingest gaps", Zero: true},
		{Title: "CPU per event recorded, all of the gateway's", Key: "Ingest cpu-ns/event", Unit: "µs", Scale: micro},
		{Title: "memory of the gateway afterwards (RSS)", Key: "Ingest rss-B", Unit: "MB", Scale: mega},
		{Title: "disk per event, compacted", Key: "Disk B/event", Unit: "B", Max: 97},
		{Title: "disk per event, as the gateway left it", Key: "Disk uncompacted-B/event", Unit: "B"},
		{Title: fmt.Sprintf("LIST of %d Pods at a past moment, JSON", s.pods), Key: "ListPast/form=json ns/op", Unit: "s", Scale: second, Max: 0.2},
		{Title: "CPU of the gateway for it", Key: "ListPast/form=json cpu-ns/op", Unit: "s", Scale: second},
		{Title: "LIST of the present Pods, from memory", Key: "ListPast/form=present ns/op", Unit: "s", Scale: second},
		{Title: "LIST at a past moment, Table", Key: "ListPast/form=table ns/op", Unit: "s", Scale: second},
		{Title: "LIST at a past moment, in the store alone", Key: "ListPast/form=store ns/op", Unit: "s", Scale: second},
		{Title: fmt.Sprintf("versions of one object among %d events", s.events), Key: "Versions/of=http ns/op", Unit: "ms", Scale: milli, Max: 20},
		{Title: "the same, in the store alone", Key: "Versions/of=store ns/op", Unit: "ms", Scale: milli},
		{Title: fmt.Sprintf("restart with %d objects: until they are served", s.many), Key: "Restart serving-ns", Unit: "s", Scale: second, Max: 3},
		{Title: fmt.Sprintf("until a watch has the %d events from before", s.resumed), Key: "Restart resumed-ns", Unit: "s", Scale: second},
		{Title: "lists upstream", Key: "Restart lists", Zero: true},
		{Title: "events replayed to a watch in a second", Key: "Replay/of=http events/s", Min: 100_000},
		{Title: "CPU of the gateway per event replayed", Key: "Replay/of=http cpu-ns/event", Unit: "µs", Scale: micro},
		{Title: "events replayed in a second in the store alone", Key: "Replay/of=store events/s"},
	}
	for _, rate := range []float64{s.slow, 10 * s.slow} {
		for _, p := range []string{"p50-ms", "p99-ms"} {
			title := fmt.Sprintf("latency added, %.0f events/s, %s", rate, p[:3])
			all = append(all,
				report.Goal{Title: title + ", without recording", Key: latency(false, rate, p), Unit: "ms"},
				report.Goal{Title: title + ", with it", Key: latency(true, rate, p), Unit: "ms"},
				report.Goal{Title: title + ", with to without", Key: latency(true, rate, p), Than: latency(false, rate, p), Max: 1.25})
		}
		all = append(all, report.Goal{Title: fmt.Sprintf("CPU per event, %.0f events/s, with recording to without", rate), Key: latency(true, rate, "cpu-ns/event"), Than: latency(false, rate, "cpu-ns/event")})
	}
	return all
}
