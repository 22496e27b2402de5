// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command history measures the cost of recording and the speed of reading the past. It
// runs a fake API server whose Pods change as kubelets change them, a gateway that
// records them to a disk, and clients.
//
//	go run ./bench/history [-run regexp] [-rounds 3] [-quick]
//
// It prints Go benchmark lines while it runs and a table of the medians at the end.
// If a scenario fails, the others still run, and the exit status is 1. It takes about 8
// minutes and 3 GB in the directory for temporary files.
//
// A change of a Pod differs from the version before in two times of the status, in the time of
// the kubelet's managedFields, and in one of ten in a restart count. The scenarios:
//
//   - past: 1,000,000 changes of 20,000 Pods, offered at 33,000 a second, until the last is on
//     disk. Then lists at moments among them, all versions of single Pods, and a watch from the
//     first change to the last, over HTTP, and from the store in this process.
//   - dispatch: how much later an event arrives at a watch of the gateway than at one of the
//     fake API server, at 1,000 and 10,000 a second, each without and then with recording.
//   - restart: a gateway with 100,000 recorded Pods is killed with SIGKILL and started again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

var (
	which       = flag.String("run", "", "a regular expression for the scenarios to run")
	rounds      = flag.Int("rounds", 3, "number of rounds; the table has the medians")
	quick       = flag.Bool("quick", false, "smaller numbers, for a first look: a minute or two")
	profiles    = flag.String("profiles", "", "a directory for CPU profiles of the gateway, of the first seconds of each read of the past")
	fakeAPIPods = flag.Int("fakeapi", 0, "serve a fake API server with this many Pods until standard input ends")
)

// profileSeconds is the length of a profile.
const profileSeconds = 4

// sizes are the numbers of the scenarios.
type sizes struct {
	pods    int     // with a recorded past
	events  int     // recorded events
	rate    float64 // of these, per second
	slow    float64 // events per second when latency is measured
	lagging time.Duration
	many    int // Pods at the restart
	resumed int // events that a watch has missed when it resumes after the restart
}

func chooseSizes(quick bool) sizes {
	if quick {
		return sizes{pods: 2000, events: 50_000, rate: 20_000, slow: 1000, lagging: 2 * time.Second, many: 5000, resumed: 1000}
	}
	return sizes{pods: 20_000, events: 1_000_000, rate: 33_000, slow: 1000, lagging: 10 * time.Second, many: 100_000, resumed: 10_000}
}

// scenarios run in this order, once a round.
var scenarios = []report.Scenario[*harness]{
	{Name: "past", Run: past},
	{Name: "dispatch", Run: dispatch},
	{Name: "restart", Run: restart},
}

func main() {
	flag.Parse()
	if *fakeAPIPods > 0 {
		report.Exit(fakeprocess.Serve(fakeapi.Options{Population: fakeapi.Population{
			Pods: *fakeAPIPods, Churn: true, Formats: []fakeapi.Format{fakeapi.Table},
		}}, os.Stdin, os.Stdout))
		return
	}
	report.Main(func(ctx context.Context, out, progress io.Writer) error {
		return run(ctx, chooseSizes(*quick), out, progress)
	})
}

func run(ctx context.Context, s sizes, out, progress io.Writer) error {
	chosen, err := report.Chosen(scenarios, *which)
	if err == nil {
		err = report.MakeDir(*profiles)
	}
	if err != nil {
		return err
	}
	r := &harness{ctx: ctx, sizes: s, report: report.New(out), Log: report.NewLog(progress)}
	defer r.close()
	report.Header(out, *rounds, *quick)
	var failed []error
	for round := range *rounds {
		failed = append(failed, report.RunAll(ctx, out, &r.Log, fmt.Sprintf("round %d, ", round+1), chosen, r))
	}
	fmt.Fprintf(out, "\nMedians of %d rounds.\n\n", *rounds)
	if missed := r.report.Goals(out, goals(s)); missed > 0 {
		fmt.Fprintf(out, "\n%d targets missed.\n", missed)
	}
	return errors.Join(failed...)
}
