// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
)

// A figure is one number of a result.
type figure struct {
	title  string // of the table's column
	unit   string // of the benchmark line
	digits int
	of     func(*report, measure.Result) float64
	// compared is set if the table of proportions has the figure. Less is better.
	compared bool
}

const mega = 1e6

var figures = []figure{
	{"sync s", "sync-s", 2, func(_ *report, r measure.Result) float64 { return r.Sync.Wall }, true},
	{"sync CPU s", "sync-cpu-s", 2, func(_ *report, r measure.Result) float64 { return r.Sync.CPU }, true},
	{"peak RSS at sync MB", "sync-peak-MB", 0, func(_ *report, r measure.Result) float64 { return r.Sync.RSSPeak / mega }, true},
	{"heap B/object", "heap-B/object", 0, func(_ *report, r measure.Result) float64 { return r.HeapPerObject }, true},
	{"events/s", "events/s", 0, func(p *report, r measure.Result) float64 { return float64(p.events) / r.Events.Wall }, false},
	{"CPU µs/event", "cpu-µs/event", 1, func(p *report, r measure.Result) float64 { return p.perEvent(r.Events) }, true},
	{"the same, decoding", "decoded-cpu-µs/event", 1, func(p *report, r measure.Result) float64 { return p.perEvent(decoded(r)) }, true},
	{"peak RSS of events MB", "events-peak-MB", 0, func(_ *report, r measure.Result) float64 { return max(r.Events.RSSPeak, decoded(r).RSSPeak) / mega }, true},
	{"handler calls/event", "calls/event", 3, func(p *report, r measure.Result) float64 { return float64(r.Events.Handled) / float64(p.events) }, false},
	{"RSS before relist MB", "relist-before-MB", 0, func(_ *report, r measure.Result) float64 { return r.Relist.RSSBefore / mega }, false},
	{"peak RSS of relist MB", "relist-peak-MB", 0, func(_ *report, r measure.Result) float64 { return r.Relist.RSSPeak / mega }, true},
	{"more by relist %", "relist-more-%", 0, func(_ *report, r measure.Result) float64 { return (r.Relist.RSSPeak/r.Relist.RSSBefore - 1) * 100 }, false},
	{"relist CPU s", "relist-cpu-s", 2, func(_ *report, r measure.Result) float64 { return r.Relist.CPU }, true},
}

// decoded returns the phase whose handler decodes each object. For a library that
// always decodes it is the phase of events.
func decoded(r measure.Result) measure.Phase {
	if r.Decoded != nil {
		return *r.Decoded
	}
	return r.Events
}

func (p *report) perEvent(phase measure.Phase) float64 { return phase.CPU * 1e6 / float64(p.events) }

// A report collects the results.
type report struct {
	pods, events int
	rows         []*row
}

// A row has the results of a mode over one of the protocols, one per round.
type row struct {
	mode    measure.Mode
	via     string
	results []measure.Result
}

func (p *report) head(w io.Writer) {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\ncpus: %d\npods: %d\nevents: %d\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), p.pods, p.events)
}

// add stores a result and prints its benchmark line.
func (p *report) add(w io.Writer, mode measure.Mode, via string, r measure.Result) {
	i := slices.IndexFunc(p.rows, func(r *row) bool {
		return r.mode.Library == mode.Library && r.mode.Name == mode.Name && r.via == via
	})
	if i < 0 {
		i = len(p.rows)
		p.rows = append(p.rows, &row{mode: mode, via: via})
	}
	p.rows[i].results = append(p.rows[i].results, r)
	fmt.Fprintf(w, "BenchmarkInformer/library=%s/mode=%s/via=%s 1", mode.Library, mode.Name, via)
	for _, f := range figures {
		fmt.Fprintf(w, " %.*f %s", f.digits, f.of(p, r), f.unit)
	}
	fmt.Fprintln(w)
}

func (p *report) median(r *row, f figure) float64 {
	var all []float64
	for _, result := range r.results {
		all = append(all, f.of(p, result))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// tables prints the medians, and their proportions to client-go's.
func (p *report) tables(w io.Writer) {
	var ways []string
	for _, r := range p.rows {
		if !slices.Contains(ways, r.via) {
			ways = append(ways, r.via)
		}
	}
	for _, way := range ways {
		fmt.Fprintf(w, "\nMedians over %s. 1 MB is 10^6 bytes; * is what client-go does by default.\n\n", name(way))
		var titles []string
		for _, f := range figures {
			titles = append(titles, f.title)
		}
		header(w, titles)
		for _, r := range p.rows {
			if r.via != way {
				continue
			}
			p.line(w, r, func(f figure) string { return fmt.Sprintf("%.*f", f.digits, p.median(r, f)) }, figures)
		}
		p.proportions(w, way)
	}
}

// proportions prints a table of figures in proportion to client-go's with the same
// encoding: to its default mode, and to its best mode for the figure.
func (p *report) proportions(w io.Writer, way string) {
	var compared []figure
	var titles []string
	for _, f := range figures {
		if f.compared {
			compared, titles = append(compared, f), append(titles, f.title)
		}
	}
	fmt.Fprintf(w, "\nOver %s, in proportion to client-go with the same encoding: to its default / to its best mode for this figure.\n\n", name(way))
	header(w, titles)
	for _, r := range p.rows {
		if r.via != way {
			continue
		}
		p.line(w, r, func(f figure) string {
			byDefault, best := p.clientGo(r, f)
			return proportion(p.median(r, f), byDefault) + " / " + proportion(p.median(r, f), best)
		}, compared)
	}
}

// clientGo returns a figure of client-go's default mode and of its best mode that keeps
// whole objects, over the same protocol and with the same encoding; NaN if it was not
// measured.
func (p *report) clientGo(than *row, f figure) (byDefault, best float64) {
	byDefault, best = math.NaN(), math.NaN()
	for _, r := range p.rows {
		m := r.mode
		if m.Library != "client-go" || m.Partial || m.Encoding != than.mode.Encoding || r.via != than.via {
			continue
		}
		v := p.median(r, f)
		if m.Default {
			byDefault = v
		}
		if math.IsNaN(best) || v < best {
			best = v
		}
	}
	return byDefault, best
}

func proportion(v, of float64) string {
	if of == 0 || math.IsNaN(of) {
		return "–"
	}
	return fmt.Sprintf("%.2f", v/of)
}

func header(w io.Writer, titles []string) {
	fmt.Fprintf(w, "| mode | %s |\n|---|%s\n", strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
}

func (p *report) line(w io.Writer, r *row, cell func(figure) string, of []figure) {
	fmt.Fprintf(w, "| %s %s", r.mode.Library, r.mode.Name)
	if r.mode.Default {
		fmt.Fprint(w, " *")
	}
	for _, f := range of {
		fmt.Fprintf(w, " | %s", cell(f))
	}
	fmt.Fprintln(w, " |")
}

func name(way string) string {
	if way == "tls" {
		return "HTTP/2 with TLS"
	}
	return "HTTP/1.1 without TLS"
}
