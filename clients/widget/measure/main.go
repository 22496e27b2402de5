// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command measure compares three programs of one controller: examples/widget, and that
// of package widget with controller-runtime's cache and with the cache of
// clientgo.ForManager. It counts their lines, and measures size, memory, CPU time and
// the time until changes are reconciled after an outage of the API server. It runs in
// the folder clients, on Linux:
//
//	go run ./widget/measure [-objects 10000] [-outage 20s] [-rounds 3]
//
// It prints a Go benchmark line for each measurement and a table of the medians. The
// programs run one at a time against a local control plane (make build), in another
// order in each round.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the flags.
type options struct {
	objects, rounds int
	outage          time.Duration
	calm            []string // programs that a test measures without an outage
}

func main() {
	var o options
	flag.IntVar(&o.objects, "objects", 10_000, "number of Widgets, each with a ConfigMap")
	flag.IntVar(&o.rounds, "rounds", 3, "number of rounds; the table has the medians")
	flag.DurationVar(&o.outage, "outage", 20*time.Second, "from the end of the API server to its next start")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context, out, progress io.Writer) error {
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(progress, "%5.0fs  %s…\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())

	say("building the controllers and starting a control plane")
	dir, err := os.MkdirTemp("", "measure-widget-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var c *cluster
	var preparing errgroup.Group
	preparing.Go(func() (err error) {
		c, err = startCluster(ctx)
		return err
	})
	for _, p := range programs {
		preparing.Go(func() error { return p.build(ctx, dir) })
	}
	err = preparing.Wait()
	if c != nil {
		defer c.Close()
	}
	if err != nil {
		return err
	}
	r := newReport(out)
	fmt.Fprintf(out, "goos: %s\ngoarch: %s\ncpus: %d\nobjects: %d\noutage: %v\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.objects, o.outage)
	for _, p := range programs {
		sizes, err := p.sizes(dir)
		if err != nil {
			return err
		}
		r.add(p.name, sizes...)
	}

	say("creating %d Widgets and their ConfigMaps", o.objects)
	if err := c.fill(ctx, o.objects); err != nil {
		return err
	}
	for round := range o.rounds {
		for i := range programs {
			p := programs[(round+i)%len(programs)]
			say("round %d of %d, %s", round+1, o.rounds, p.name)
			values, err := c.measure(ctx, p, dir, o)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			r.add(p.name, values...)
		}
	}
	r.table(out)
	return nil
}

// until calls done every 20 ms until it returns true. It fails after the timeout, with
// the last error of done if there is one.
func until(ctx context.Context, what string, timeout time.Duration, done func() (bool, error)) error {
	for deadline := time.Now().Add(timeout); ; {
		ok, err := done()
		if ok && err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timeout waiting for %s (%v)", what, err)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
