// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command page measures the page in a Chromium without a GPU, with a gateway in front
// of a fake API server with many Nodes and Pods.
//
//	go run ./bench/page [-run regexp] [-quick] [-minutes 10] [-shots DIR] [-profile DIR]
//
// It needs the page in ui/dist, Node with the packages of ui, and Chromium. It prints
// Go benchmark lines while it runs and a table at the end. If a scenario fails, the others
// still run, and the exit status is 1. The browser reports as little as possible
// (ui/bench/chromium.mjs): test drivers make it keep what it receives. The scenarios:
//
//   - open: the page is opened five times, until all Pods are on the board.
//   - steady: for 30 s while 1,000 Pods change each second.
//   - memory: the same for -minutes, with the renderer's private memory after collections.
//   - table: a table of 50,000 Pods is scrolled by 700 pixels in each frame for 30 s.
//   - scrub: moments are pressed on the time strip of a recorded cluster of 20,000 Pods.
//   - sheet: 5,000 rows of 20 columns and four formulas, while 200 Pods change each second.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

var (
	which       = flag.String("run", "", "a regular expression for the scenarios to run: open, steady, memory, table, sheet, scrub")
	quick       = flag.Bool("quick", false, "smaller numbers, for a first look")
	minutes     = flag.Float64("minutes", 10, "duration of the memory scenario")
	shots       = flag.String("shots", "", "a directory for screenshots")
	profile     = flag.String("profile", "", "a directory for a profile of the page's main thread, for some seconds after the measured ones")
	fakeAPIPods = flag.Int("fakeapi", 0, "serve a fake API server with this many Pods until standard input ends")
	nodes       = flag.Int("nodes", 0, "number of Nodes of -fakeapi")
)

// sizes are the numbers of the scenarios.
type sizes struct {
	nodes, pods         int
	rate                int // changes per second
	opens               int // number of times that the page is opened
	seconds             int // duration of counting frames
	pastNodes, pastPods int // of the recorded cluster
	recorded            int // changes that are recorded at the busyRate
	tablePods           int // in the table of a kind
	sheetPods           int // in the spreadsheet
	tableRate           int // changes per second of either, and of the recorded cluster
}

// busyRate is the higher rate of changes of the recorded cluster.
func (s sizes) busyRate() float64 { return 1.5 * float64(s.rate) }

func chooseSizes(quick bool) sizes {
	if quick {
		return sizes{nodes: 500, pods: 15_000, rate: 1000, opens: 2, seconds: 5, pastNodes: 100, pastPods: 3000, recorded: 20_000, tablePods: 5000, sheetPods: 1000, tableRate: 200}
	}
	return sizes{nodes: 5000, pods: 150_000, rate: 1000, opens: 5, seconds: 30, pastNodes: 667, pastPods: 20_000, recorded: 60_000, tablePods: 50_000, sheetPods: 5000, tableRate: 200}
}

func main() {
	flag.Parse()
	if *fakeAPIPods > 0 {
		report.Exit(fakeprocess.Serve(fakeapi.Options{Population: fakeapi.Population{
			Pods: *fakeAPIPods, Nodes: *nodes, Churn: true, Formats: []fakeapi.Format{fakeapi.Table},
		}}, os.Stdin, os.Stdout))
		return
	}
	report.Main(func(ctx context.Context, out, progress io.Writer) error {
		return run(ctx, chooseSizes(*quick), out, progress)
	})
}

func run(ctx context.Context, s sizes, out, progress io.Writer) error {
	wanted, err := regexp.Compile(*which)
	if err != nil {
		return err
	}
	r := &harness{ctx: ctx, sizes: s, report: report.New(out), progress: progress, start: time.Now()}
	defer r.close()
	report.Header(out, 1, *quick)
	if r.browser, err = startBrowser(ctx); err != nil {
		return err
	}
	defer r.browser.Stop()
	if err := r.clusters(wanted); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if missed := r.report.Goals(out, goals(s)); missed > 0 {
		fmt.Fprintf(out, "\n%d targets missed.\n", missed)
	}
	return errors.Join(append(r.failed, ctx.Err())...)
}
