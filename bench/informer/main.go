// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command informer measures the CPU and memory that an informer of all Pods of a
// cluster takes: to sync, to follow changes at full speed, and to relist without
// changes. It measures several libraries, each in several modes, in one run against one
// fake API server. Each client runs alone, in its own process.
//
//	go run ./bench/informer [-pods 50000] [-events 100000] [-rounds 3] [-modes regexp] [-via http,tls] [-cpuprofile folder]
//
// It prints a Go benchmark line for each measurement, and tables of the medians. It
// builds the clients, so it must run in the repository.
//
// A client is a program in a folder of bench/informer/clients that passes its modes to
// measure.Main. Each library has its own program, so that no process has another
// library's code and types in memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

var (
	pods    = flag.Int("pods", 50_000, "number of Pods")
	events  = flag.Int("events", 100_000, "number of changes")
	rounds  = flag.Int("rounds", 3, "number of rounds; the tables have the medians")
	modes   = flag.String("modes", "", "a regular expression for the modes to measure, as in client-go/typed or baseline")
	via     = flag.String("via", "http,tls", "http (HTTP/1.1 without TLS), tls (HTTP/2 with TLS) or both")
	profile = flag.String("cpuprofile", "", "a folder for CPU profiles of the clients, one per phase")
	serve   = flag.Bool("serve", false, "serve the fake API server until standard input ends")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *serve {
		err = fakeprocess.Serve(fakeapi.Options{Population: fakeapi.Population{
			Pods: *pods, Formats: []fakeapi.Format{fakeapi.JSON, fakeapi.Protobuf, fakeapi.MetadataProtobuf},
		}}, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// profiles returns the beginning of the file names of a client's profiles; "" for none.
func profiles(c client, way string, round int) string {
	if *profile == "" {
		return ""
	}
	return filepath.Join(*profile, fmt.Sprintf("%s-%s-%s-%d-", c.Library, c.Name, way, round+1))
}

func run(ctx context.Context, out, progress io.Writer) error {
	wanted, err := regexp.Compile(*modes)
	if err != nil {
		return err
	}
	fmt.Fprintln(progress, "building the clients…")
	all, cleanup, err := buildClients(ctx, "bench/informer/clients")
	if err != nil {
		return err
	}
	defer cleanup()
	var chosen []client
	for _, c := range all {
		// "floor" is the former name of the baseline.
		if wanted.MatchString(c.Library+"/"+c.Name) || c.Library == "baseline" && wanted.MatchString("floor/"+c.Name) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mode matches %q", *modes)
	}
	fmt.Fprintf(progress, "starting an API server with %d Pods…\n", *pods)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	addresses, end, err := fakeprocess.Start(exec.CommandContext(ctx, self, "-serve", fmt.Sprint("-pods=", *pods)))
	if err != nil {
		return err
	}
	defer end()

	r := &report{pods: *pods, events: *events}
	r.head(out)
	ways := strings.Split(*via, ",")
	done, total, start := 0, *rounds*len(ways)*len(chosen), time.Now()
	for round := range *rounds {
		for _, way := range ways {
			target, ok := addresses[way]
			if !ok {
				return fmt.Errorf("-via %s: it is http or tls", way)
			}
			for _, c := range chosen {
				done++
				fmt.Fprintf(progress, "%5.0fs  %d of %d, round %d: %s %s over %s…\n", time.Since(start).Seconds(), done, total, round+1, c.Library, c.Name, way)
				result, err := c.measure(ctx, measure.Order{
					Mode: c.Name, Target: measure.Target(target), Pods: *pods, Events: *events, Profile: profiles(c, way, round),
				})
				if err != nil {
					return err
				}
				r.add(out, c.Mode, way, result)
			}
		}
	}
	r.tables(out)
	return nil
}
