// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// events measures what receiving events costs the gateway, at a rate that no API server
// reaches: without a watch, and with a watch that receives all of them.
func events(r *harness) error {
	var failed []error
	for round := range *rounds {
		for _, watches := range []int{0, 1} {
			if err := r.ingest(round, watches); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

func (r *harness) ingest(round, watches int) error {
	s := r.sizes
	r.Say("round %d: %d events, %.0f/s, %d watches", round+1, s.ingest, s.ingestRate, watches)
	g, err := r.loaded(s.cached/5, streams.HTTP1)
	if err != nil {
		return err
	}
	defer g.stop()
	set, err := r.open(g.gateway.target, streams.Options{Paths: same(watches, pods+fromNow)})
	if err != nil {
		return err
	}
	defer set.Close()
	clock, err := startClock(g.gateway)
	if err != nil {
		return err
	}
	before, err := g.taken()
	if err != nil {
		return err
	}
	profiled := g.gateway.profile(fmt.Sprintf("ingest-%d", watches), 5*time.Second)
	start := time.Now()
	if err := r.generate(g, s.ingest, s.ingestRate); err != nil {
		return err
	}
	firing := time.Since(start)
	for {
		now, err := g.taken()
		if err != nil {
			return err
		}
		if now-before >= float64(s.ingest) {
			break
		}
		if time.Since(start) > 2*timeout {
			return fmt.Errorf("the gateway received %.0f of %d events within %v", now-before, s.ingest, 2*timeout)
		}
		time.Sleep(25 * time.Millisecond) // answering metrics costs the gateway CPU, too
	}
	took := time.Since(start)
	// A watch that lags behind the window ends with a 410, which is a result, too.
	counts, err := set.WaitEach(int64(s.ingest), timeout)
	if err != nil && counts.Cut == 0 {
		return err
	}
	used, err := clock.since()
	if err != nil {
		return err
	}
	r.report.Add(fmt.Sprintf("Ingest/via=gateway/watches=%d", watches), s.ingest,
		report.Value{Of: float64(s.ingest) / took.Seconds(), Unit: "events/s"},
		report.Value{Of: float64(s.ingest) / firing.Seconds(), Unit: "fired/s"},
		report.Value{Of: perOp(used[0], s.ingest), Unit: "cpu-ns/event"},
		report.Value{Of: float64(counts.Cut), Unit: "cut"})
	return profiled()
}
