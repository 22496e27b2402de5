// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/loadgen"
	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

// settle is the pause before a measurement of the page.
const settle = 5 * time.Second

// clusters runs the scenarios. Scenarios with the same cluster share it.
func (r *harness) clusters(wanted *regexp.Regexp) error {
	if wanted.MatchString("open") || wanted.MatchString("steady") || wanted.MatchString("memory") {
		r.say("%d Nodes, %d Pods", r.sizes.nodes, r.sizes.pods)
		c, err := r.load(r.sizes.nodes, r.sizes.pods, false)
		if err != nil {
			return err
		}
		r.scenario(wanted, "open", c.opens)
		r.scenario(wanted, "steady", c.steady)
		r.scenario(wanted, "memory", c.memory)
		c.stop()
	}
	if wanted.MatchString("table") {
		r.say("%d Pods in a table", r.sizes.tablePods)
		c, err := r.load(r.sizes.pastNodes, r.sizes.tablePods, false)
		if err != nil {
			return err
		}
		r.scenario(wanted, "table", c.table)
		c.stop()
	}
	if wanted.MatchString("sheet") {
		r.say("%d Pods in a spreadsheet", r.sizes.sheetPods)
		c, err := r.load(r.sizes.pastNodes, r.sizes.sheetPods, false)
		if err != nil {
			return err
		}
		r.scenario(wanted, "sheet", c.sheet)
		c.stop()
	}
	if wanted.MatchString("scrub") {
		r.say("%d Nodes, %d Pods, recorded", r.sizes.pastNodes, r.sizes.pastPods)
		c, err := r.load(r.sizes.pastNodes, r.sizes.pastPods, true)
		if err != nil {
			return err
		}
		r.scenario(wanted, "scrub", c.scrub)
		c.stop()
	}
	return nil
}

// opened is the browser's report on opening the page.
type opened struct {
	Painted     float64 // in milliseconds
	Busy        float64 // CPU of the main thread, in seconds
	Renderer    string
	Pods, Nodes int
}

func (c *cluster) open() (o opened, err error) {
	return o, c.browser.do("open", map[string]any{"url": c.meter.URL + "/ui/"}, &o)
}

// opens measures the time until the page is painted in full: the first time, when the
// gateway makes the projection, and later times.
func (c *cluster) opens() error {
	for i := range c.sizes.opens {
		before := c.meter.sent.Load()
		cpu, err := process.CPU(c.Gateway.PID())
		if err != nil {
			return err
		}
		o, err := c.open()
		if err != nil {
			return err
		}
		after, err := process.CPU(c.Gateway.PID())
		if err != nil {
			return err
		}
		name := "Open"
		if i == 0 {
			name = "OpenFirst"
		}
		c.say("%.2f s, %d Pods on %d Nodes by %s", o.Painted/1000, o.Pods, o.Nodes, o.Renderer)
		c.report.Add(name, o.Pods,
			report.Value{Of: o.Painted / 1000, Unit: "s"},
			report.Value{Of: float64(c.meter.sent.Load()-before) / 1e6, Unit: "MB"},
			report.Value{Of: o.Busy, Unit: "main-s"},
			report.Value{Of: (after - cpu).Seconds(), Unit: "gateway-s"})
		time.Sleep(settle)
	}
	return c.shot("open")
}

// steady measures frames and CPU of the page, and bytes on the wire, while changes
// arrive.
func (c *cluster) steady() error {
	if _, err := c.open(); err != nil {
		return err
	}
	stop := c.generate(c.sizes.rate)
	time.Sleep(settle)
	var frames struct{ FPS, P50, P95, P99, Most, Batches, Busy float64 }
	cpu, err := process.CPU(c.Gateway.PID())
	if err != nil {
		return err
	}
	before, start := c.meter.sent.Load(), time.Now()
	if err := c.browser.do("frames", map[string]any{"seconds": c.sizes.seconds}, &frames); err != nil {
		return err
	}
	sent, took := c.meter.sent.Load()-before, time.Since(start).Seconds()
	after, err := process.CPU(c.Gateway.PID())
	if err != nil {
		return err
	}
	changes := float64(c.sizes.rate) * took
	c.report.Add("Steady", int(changes),
		report.Value{Of: frames.FPS, Unit: "fps"},
		report.Value{Of: frames.P50, Unit: "p50-ms"},
		report.Value{Of: frames.P95, Unit: "p95-ms"},
		report.Value{Of: frames.P99, Unit: "p99-ms"},
		report.Value{Of: frames.Most, Unit: "most-ms"},
		report.Value{Of: 100 * frames.Busy, Unit: "main-%"},
		report.Value{Of: frames.Batches / took, Unit: "batches/s"},
		report.Value{Of: float64(sent) / changes, Unit: "B/change"},
		report.Value{Of: 100 * (after - cpu).Seconds() / took, Unit: "gateway-%"})
	if *profile != "" {
		file, err := filepath.Abs(filepath.Join(*profile, "steady.cpuprofile"))
		if err != nil {
			return err
		}
		if err := c.browser.do("profile", map[string]any{"file": file, "seconds": 10}, &struct{}{}); err != nil {
			return err
		}
	}
	if err := c.shot("steady"); err != nil {
		return err
	}
	return stop()
}

// memory samples the memory of the page while changes arrive.
func (c *cluster) memory() error {
	if _, err := c.open(); err != nil {
		return err
	}
	stop := c.generate(c.sizes.rate)
	const samples = 20
	every := time.Duration(*minutes * float64(time.Minute) / samples)
	var at, held []float64
	var m struct{ Main, Worker, Buffers, Footprint float64 }
	for i := range samples {
		select {
		case <-time.After(every):
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
		if err := c.browser.do("memory", nil, &m); err != nil {
			return err
		}
		c.say("%.1f min: %.1f MiB: JavaScript %.1f in the page and %.1f in its worker, buffers %.1f", float64(i+1)*every.Minutes(), m.Footprint, m.Main, m.Worker, m.Buffers)
		at, held = append(at, float64(i+1)*every.Hours()), append(held, m.Footprint)
	}
	c.report.Add("Memory", samples,
		report.Value{Of: m.Footprint, Unit: "last-MiB"},
		report.Value{Of: slices.Max(held), Unit: "most-MiB"},
		report.Value{Of: m.Main + m.Worker, Unit: "js-MiB"},
		report.Value{Of: slope(at[samples/2:], held[samples/2:]), Unit: "MiB/hour"})
	if err := c.shot("memory"); err != nil {
		return err
	}
	return stop()
}

// slope returns the slope of the least-squares line through the points.
func slope(x, y []float64) float64 {
	var mx, my, xy, xx float64
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
	}
	return xy / xx
}

// table measures the table of a kind while it is scrolled, by a screen in each two frames,
// and while Pods change.
func (c *cluster) table() error {
	stop := c.generate(c.sizes.tableRate)
	var t struct {
		Complete float64 // in milliseconds
		Rows     int     // in the document
		FPS      float64
		P95, P99 float64
		Busy     float64
	}
	err := c.browser.do("table", map[string]any{"url": c.meter.URL + "/ui/?view=table&kind=pods", "objects": c.sizes.tablePods, "seconds": c.sizes.seconds}, &t)
	if err != nil {
		return err
	}
	c.say("complete after %.2f s, %d rows in the document", t.Complete/1000, t.Rows)
	c.report.Add("Table", c.sizes.tablePods,
		report.Value{Of: t.Complete / 1000, Unit: "s"},
		report.Value{Of: t.FPS, Unit: "fps"},
		report.Value{Of: t.P95, Unit: "p95-ms"},
		report.Value{Of: t.P99, Unit: "p99-ms"},
		report.Value{Of: 100 * t.Busy, Unit: "main-%"})
	if err := c.shot("table"); err != nil {
		return err
	}
	return stop()
}

// sheetColumns are the columns of the spreadsheet; with namespace and name there are 20.
var sheetColumns = []string{
	"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.generateName", "metadata.labels.app", "metadata.labels.pod-template-hash",
	"spec.nodeName", "spec.serviceAccountName", "spec.schedulerName", "spec.restartPolicy", "spec.containers[0].name", "spec.containers[0].image",
	"status.phase", "status.podIP", "status.hostIP", "status.startTime", "status.containerStatuses[0].restartCount", `status.conditions[?(@.type=="Ready")].status`,
}

// sheet measures how long a change takes from its arrival until it is painted in a
// spreadsheet, with formulas over all rows.
func (c *cluster) sheet() error {
	stop := c.generate(c.sizes.tableRate)
	rows := c.sizes.sheetPods + 1
	formulas := []map[string]string{
		{"cell": "V2", "formula": fmt.Sprintf(`=COUNTIF(O2:O%d,"Running")`, rows)},
		{"cell": "V3", "formula": fmt.Sprintf(`=SUM(S2:S%d)`, rows)},
		{"cell": "V4", "formula": fmt.Sprintf(`=SUMIF(I2:I%d,"node-1",S2:S%d)`, rows, rows)},
		{"cell": "V5", "formula": `=IF(HOUR(NOW())<7,0,MAX(2,CEILING(V3/100,1)))`},
	}
	var s struct {
		Complete       float64 // in milliseconds
		FPS, Busy      float64
		Changes        int // frames with changes
		P50, P99, Most float64
	}
	err := c.browser.do("sheet", map[string]any{
		"url": c.meter.URL + "/ui/", "objects": c.sizes.sheetPods, "columns": sheetColumns, "formulas": formulas, "seconds": c.sizes.seconds,
	}, &s)
	if err != nil {
		return err
	}
	c.say("complete after %.2f s, %d frames with changes", s.Complete/1000, s.Changes)
	if s.Changes == 0 {
		return errors.New("no change was painted")
	}
	c.report.Add("Sheet", c.sizes.sheetPods,
		report.Value{Of: s.Complete / 1000, Unit: "s"},
		report.Value{Of: s.P50, Unit: "p50-ms"},
		report.Value{Of: s.P99, Unit: "p99-ms"},
		report.Value{Of: s.Most, Unit: "most-ms"},
		report.Value{Of: s.FPS, Unit: "fps"},
		report.Value{Of: 100 * s.Busy, Unit: "main-%"})
	if err := c.shot("sheet"); err != nil {
		return err
	}
	return stop()
}

// scrub measures the time from a press on the timeline strip until the board shows that
// moment: after a minute of changes at the rate of the tables, and after more at a high one.
func (c *cluster) scrub() error {
	if err := c.WaitMetric("watchkeeper_history_head_rv", 1); err != nil {
		return err
	}
	if err := c.scrubAfter("Scrub", 60*c.sizes.tableRate, float64(c.sizes.tableRate)); err != nil {
		return err
	}
	if err := c.scrubAfter("ScrubBusy", c.sizes.recorded, c.sizes.busyRate()); err != nil {
		return err
	}
	return c.shot("scrub")
}

func (c *cluster) scrubAfter(key string, changes int, rate float64) error {
	if _, err := loadgen.Generate(c.ctx, c.URL, changes, rate); err != nil {
		return err
	}
	if _, err := c.open(); err != nil {
		return err
	}
	time.Sleep(settle)
	var scrubbed struct {
		Took []float64 // in milliseconds
		Past bool
	}
	// The strip has the last minute.
	if err := c.browser.do("scrub", map[string]any{"at": []float64{0.5, 0.7, 0.4, 0.6, 0.3, 0.65, 0.45, 0.55, 0.35}}, &scrubbed); err != nil {
		return err
	}
	c.say("%g changes/s: %.0f ms", rate, scrubbed.Took)
	for _, took := range scrubbed.Took {
		c.report.Add(key+"One", 1, report.Value{Of: took, Unit: "ms"})
	}
	c.report.Add(key, len(scrubbed.Took),
		report.Value{Of: report.Median(scrubbed.Took) / 1000, Unit: "p50-s"},
		report.Value{Of: slices.Max(scrubbed.Took) / 1000, Unit: "most-s"})
	return nil
}
