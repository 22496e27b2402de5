// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command shared measures the gateway's shared mode: what authentication and
// authorization of each request cost, and what thousands of users cost the API server.
//
//	go run ./bench/shared [-run regexp] [-users 10000] [-hold 2m] [-quick] [-profiles dir]
//
// It prints Go benchmark lines while it runs and a table of the medians at the end; the
// method is in docs/benchmarks.md. If a scenario fails, the others still run, and the exit
// status is 1. It needs bin/localcluster, about 35 minutes, 4 GB of memory, and an open-file
// limit of 20,000.
//
// Users are ServiceAccounts in ten namespaces. In nine of them each has a RoleBinding; in the
// last, a ClusterRoleBinding of the namespace's group lets all read the cluster's ConfigMaps.
// Reviews are counted in whole minutes from a minute after the watches are open: the gateway
// checks a right every 45 to 75 seconds. The scenarios:
//
//   - cached: a LIST of ten ConfigMaps (38 KB) and a GET at RV 0, 8,000 times, at a gateway in
//     shared mode and at one in local mode, in turns of 400, and at the API server.
//   - upstream: 10 updates a second for a minute: without a watch, with 1,000 at the API server,
//     and with 1,000 of as many users, and of 100, at the gateway.
//   - held: 10,000 users hold a watch each for three minutes. Then each must get an event.
//   - revoked: RoleBindings of 100 of them are deleted, then the binding of the group of 1,000.
//     The time is from the API server's own denial, asked every 5 ms, to the end of the watch.
//   - few: as held, with 10,000 watches of 100 users.
//   - hostile: up to 29 users list and watch the ten ConfigMaps of their namespace four times a
//     second, for a minute without and for another with a 30th user's loops (hostile.go).
//   - start: the end bookmark of a streaming list without an RV, right after a write to another
//     resource, 40 times from each server, in turns.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

var (
	which    = flag.String("run", "", "a regular expression for the scenarios to run")
	rounds   = flag.Int("rounds", 3, "number of rounds; the table has the medians")
	users    = flag.Int("users", 0, "number of users, at least 200; 0 is 10,000, or 200 with -quick")
	holding  = flag.Duration("hold", 0, "how long held and few count reviews; 0 is 2m, or 15s with -quick")
	quick    = flag.Bool("quick", false, "smaller numbers, for a first look: a few minutes")
	profiles = flag.String("profiles", "", "a directory for CPU profiles of the gateway while it answers cached requests, and beside a hostile user")
)

// The scenarios, in the order in which they run, each over all rounds. The watches that held
// opens are those of which revoked takes some away.
var scenarios = []report.Scenario[*harness]{
	{Name: "cached", Run: cached},
	{Name: "upstream", Run: upstream},
	{Name: "held", Run: held},
	{Name: "revoked", Run: revoked},
	{Name: "few", Run: few},
	{Name: "hostile", Run: hostile},
	{Name: "start", Run: starting},
}

// sizes are the numbers of the scenarios.
type sizes struct {
	users    int
	pairs    int           // of measurements of cached requests, in both modes
	requests int           // per measurement
	busy     time.Duration // how long servers have such requests before they are measured
	rate     float64       // of updates, per second
	spread   time.Duration // until the checks of watches are spread over time
	span     time.Duration // of a measurement of the API server
	hold     time.Duration // of all watches
	single   int           // bindings of one user that are deleted
}

// The gateway checks a right every 45 to 75 seconds. A span of a minute, begun a minute
// after the watches were opened, has one check of each on average.
func chooseSizes(quick bool, users int, hold time.Duration) sizes {
	s := sizes{users: 10_000, pairs: 7, requests: 8000, busy: 20 * time.Second, rate: 10, spread: time.Minute, span: time.Minute, hold: 2 * time.Minute, single: 100}
	if quick {
		s = sizes{users: 200, pairs: 7, requests: 500, busy: time.Second, rate: 10, spread: 15 * time.Second, span: 10 * time.Second, hold: 15 * time.Second, single: 10}
	}
	if users > 0 {
		s.users = users
	}
	if hold > 0 {
		s.hold = hold
	}
	return s
}

func main() {
	if attacks() {
		return
	}
	flag.Parse()
	report.Main(func(ctx context.Context, out, progress io.Writer) error {
		return run(ctx, chooseSizes(*quick, *users, *holding), out, progress)
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
	if s.users < minUsers {
		return fmt.Errorf("%d users are too few, the minimum is %d", s.users, minUsers)
	}
	r := newHarness(ctx, s, report.New(out), progress)
	defer r.down()
	report.Header(out, *rounds, *quick)
	fmt.Fprintf(out, "users: %d\n", s.users)
	failed := report.RunAll(ctx, out, &r.Log, "", chosen, r)
	fmt.Fprintf(out, "\nMedians.\n\n")
	if missed := r.report.Goals(out, goals(s)); missed > 0 {
		fmt.Fprintf(out, "\n%d targets missed.\n", missed)
	}
	return failed
}
