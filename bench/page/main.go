// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command page measures the page: a synthetic API server with many Nodes and
// Pods, a gateway in front of it, and a Chromium without a GPU that looks at
// /ui/.
//
//	go run ./bench/page [-run regexp] [-quick] [-minutes 10] [-shots DIR] [-profile DIR]
//
// It needs the page in ui/dist, Node with the packages of ui, and Chromium. It
// prints Go benchmark lines as it goes and a table at the end. What it measures
// is in docs/benchmarks.md. A scenario that fails is reported and the others go
// on; the exit status is then 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/internal/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/fakeapi/fakeprocess"
)

var (
	which       = flag.String("run", "", "a regular expression for the scenarios to run: open, steady, memory, scrub")
	quick       = flag.Bool("quick", false, "smaller numbers, for a first look")
	minutes     = flag.Float64("minutes", 10, "how long memory is watched")
	shots       = flag.String("shots", "", "keep pictures in this directory")
	profile     = flag.String("profile", "", "keep a profile of the page's main thread in this directory, of some seconds behind those measured")
	fakeAPIPods = flag.Int("fakeapi", 0, "serve a fake API server with this many Pods until standard input ends")
	nodes       = flag.Int("nodes", 0, "how many Nodes -fakeapi has")
)

// sizes are the numbers of the scenarios.
type sizes struct {
	nodes, pods         int
	rate                int // changes in a second
	opens               int // how often the page is opened
	seconds             int // for which frames are counted
	pastNodes, pastPods int // of the cluster whose past is looked at
	recorded            int // changes of it
}

func chooseSizes(quick bool) sizes {
	if quick {
		return sizes{nodes: 500, pods: 15_000, rate: 1000, opens: 2, seconds: 5, pastNodes: 100, pastPods: 3000, recorded: 20_000}
	}
	return sizes{nodes: 5000, pods: 150_000, rate: 1000, opens: 5, seconds: 30, pastNodes: 667, pastPods: 20_000, recorded: 60_000}
}

func init() { flag.IntVar(fakeAPIPods, "cannon", 0, "the former name of -fakeapi") }

func main() {
	flag.Parse()
	var err error
	if *fakeAPIPods > 0 {
		err = fakeprocess.Serve(fakeapi.Options{Population: fakeapi.Population{
			Pods: *fakeAPIPods, Nodes: *nodes, Churn: true, Formats: []fakeapi.Format{fakeapi.Table},
		}}, os.Stdin, os.Stdout)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, chooseSizes(*quick), os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
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
	defer r.browser.close()
	if err := r.clusters(wanted); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if missed := r.report.Goals(out, goals(s)); missed > 0 {
		fmt.Fprintf(out, "\n%d targets missed.\n", missed)
	}
	return errors.Join(append(r.failed, ctx.Err())...)
}
