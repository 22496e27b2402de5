// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command fanout measures what serving many readers costs kube-apiserver, and the
// gateway in front of it: in one run, with the same clients, on the same machine.
//
//	go run ./bench/fanout [-run regexp] [-rounds 3] [-quick] [-profiles dir]
//
// It prints Go benchmark lines while it runs and a table of the medians at the end; the
// method is in docs/benchmarks.md. If a scenario fails, the others still run, and the exit
// status is 1. It needs bin/localcluster, about 25 minutes, and an open-file limit of 20,000.
//
// Updates are PUTs of 50 ConfigMaps of 3.8 KB, 4.2 KB as an event. The scenarios:
//
//   - memory: 4,000 watches are opened and receive nothing, at a new gateway each time.
//   - delivery: 1,000 watches of all ConfigMaps, 100 updates at 10 a second, with clients that
//     send no window updates, and with Go's.
//   - selective: 3,000 watches, each with its own label selector; one of them matches each
//     update. 20 updates a second at the API server, which saturates near 80, and 40 at the
//     gateway.
//   - latency: 100 watches and one direct watch in the same process, at 100 updates a second,
//     and at 1,000 with the fake API server. Clients and writer have the lowest priority.
//   - saturation: 1,000 watches, and updates as fast as the API server accepts them from 8
//     writers; 2,000 watches at 20 updates a second.
//   - burst: 1,000 watches, and 1,000 events of the fake API server at once.
//   - list: 10,000 Pods of 3.3 KB at RV 0, in all encodings, 5 times after one that is not
//     counted; and 100 times with a label selector that ten match.
//   - objects: 50,000 Pods of the fake API server, without and with --record, 10 s after the
//     gateway has listed them, and after two updates of each.
//   - ingest: 500,000 events at 50,000 a second into a gateway with 10,000 Pods.
//   - users: PUTs by client-go, each until an informer's handler has it; kubectl get pods -A;
//     an informer of 10,000 Pods (client-go, protobuf, streaming list) until it has synced.
//   - held: 15,000 watches on separate connections get 2 updates a second for 20 s, and 50,000
//     over HTTP/2 one every 2 s; once.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/watchkeeper/watchkeeper/bench/lib/barewrites"
	"github.com/watchkeeper/watchkeeper/bench/lib/informers"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

var (
	which       = flag.String("run", "", "a regular expression for the scenarios to run")
	rounds      = flag.Int("rounds", 3, "number of rounds; the table has the medians")
	quick       = flag.Bool("quick", false, "smaller numbers, for a first look: a few minutes")
	profiles    = flag.String("profiles", "", "a directory for CPU profiles of the gateway")
	fakeAPIPods = flag.Int("fakeapi", 0, "serve a fake API server with this many Pods until standard input ends")
	writesOf    = flag.Int("baseline", 0, "serve watches whose events have this many bytes; an event for each byte of standard input")
	asInformer  = flag.Bool("informer", false, "run a client-go informer with an order from standard input")
)

// The scenarios, in the order in which they run, each over all rounds. Memory is first,
// because the API server's memory grows while it runs.
var scenarios = []report.Scenario[*harness]{
	{Name: "memory", Run: idleMemory},
	{Name: "delivery", Run: deliveries},
	{Name: "selective", Run: selective},
	{Name: "latency", Run: latency},
	{Name: "saturation", Run: saturation},
	{Name: "burst", Run: bursts},
	{Name: "list", Run: lists},
	{Name: "users", Run: users},
	{Name: "objects", Run: objectMemory},
	{Name: "ingest", Run: events},
	{Name: "held", Run: held},
}

func main() {
	flag.Parse()
	switch {
	case *fakeAPIPods > 0:
		report.Exit(fakeprocess.Serve(fakeapi.Options{Population: fakeapi.Population{
			Pods: *fakeAPIPods, Formats: []fakeapi.Format{fakeapi.JSON, fakeapi.Table},
		}}, os.Stdin, os.Stdout))
	case *writesOf > 0:
		report.Exit(barewrites.Serve(*writesOf, os.Stdin, os.Stdout))
	case *asInformer:
		report.Exit(informers.Serve(os.Stdin, os.Stdout))
	default:
		report.Main(func(ctx context.Context, out, progress io.Writer) error {
			return run(ctx, chooseSizes(*quick), out, progress)
		})
	}
}

func run(ctx context.Context, s sizes, out, progress io.Writer) error {
	chosen, err := report.Chosen(scenarios, *which)
	if err == nil {
		err = report.MakeDir(*profiles)
	}
	if err != nil {
		return err
	}
	r := newHarness(ctx, s, report.New(out), progress)
	defer r.close()
	report.Header(out, *rounds, *quick)
	failed := report.RunAll(ctx, out, &r.Log, "", chosen, r)
	table := rows(s)
	fmt.Fprintf(out, "\nMedians of %d rounds.\n\n", *rounds)
	if missed := r.report.Table(out, table); missed > 0 {
		fmt.Fprintf(out, "\n%d targets missed.\n", missed)
	}
	if without := r.report.Without(table); *which == "" && failed == nil && len(without) > 0 {
		return fmt.Errorf("nothing measured %s", strings.Join(without, ", "))
	}
	return failed
}
