// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/loadgen"
	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

// dispatch measures how much later a watch of the gateway receives an event than a
// watch of the fake API server, with recording and without. The two are measured
// directly after each other, so that the state of the machine is similar.
func dispatch(r *harness) error {
	for _, rate := range []float64{r.sizes.slow, 10 * r.sizes.slow} {
		for _, record := range []bool{false, true} {
			if err := r.lag(rate, record); err != nil {
				return err
			}
		}
	}
	return nil
}

// on returns the part of a benchmark's name that says whether the gateway records.
func on(record bool) string {
	if record {
		return "recording=on"
	}
	return "recording=off"
}

func (r *harness) lag(rate float64, record bool) error {
	c, err := r.load(r.sizes.pods, record)
	if err != nil {
		return err
	}
	defer c.Stop()
	n := int(rate * r.sizes.lagging.Seconds())
	r.Say("%d events, %.0f/s, %s", n, rate, on(record))
	// Two maps, which are compared after the watches have ended.
	direct, later := make(map[uint64]time.Time, n), make(map[uint64]time.Time, n)
	of, err := c.watch(c.URL, pods+fromNow, 1, func(_ int, rv uint64, at time.Time) { direct[rv] = at })
	if err != nil {
		return err
	}
	defer of.Close()
	set, err := c.watch(c.Gateway.URL, pods+fromNow, 1, func(_ int, rv uint64, at time.Time) { later[rv] = at })
	if err != nil {
		return err
	}
	defer set.Close()
	if err := c.idle(); err != nil {
		return err
	}
	before, err := process.CPU(c.Gateway.PID())
	if err != nil {
		return err
	}
	last, err := c.generate(n, rate)
	if err != nil {
		return err
	}
	if _, err := set.WaitEach(int64(n), loadgen.Timeout); err != nil {
		return err
	}
	if _, err := of.WaitEach(int64(n), loadgen.Timeout); err != nil {
		return err
	}
	if record {
		if err := c.WaitMetric("watchkeeper_history_head_rv", float64(last)); err != nil {
			return err
		}
	}
	after, err := process.CPU(c.Gateway.PID())
	if err != nil {
		return err
	}
	of.Close()
	set.Close()
	lags := make([]float64, 0, n)
	for rv, at := range later {
		lags = append(lags, float64(at.Sub(direct[rv]))/float64(time.Millisecond))
	}
	r.report.Add(fmt.Sprintf("Latency/%s/rate=%.0f", on(record), rate), n,
		report.Value{Of: report.Percentile(lags, 50), Unit: "p50-ms"},
		report.Value{Of: report.Percentile(lags, 99), Unit: "p99-ms"},
		report.Value{Of: float64(after-before) / float64(n), Unit: "cpu-ns/event"})
	return nil
}

// idle waits until the gateway uses next to no CPU: what follows from the first list, such
// as compactions of its record, is no part of what an event costs.
func (c *cluster) idle() error {
	const pause, share = 500 * time.Millisecond, 0.02
	for end := time.Now().Add(loadgen.Timeout); time.Now().Before(end); {
		before, err := process.CPU(c.Gateway.PID())
		if err != nil {
			return err
		}
		if err := report.Sleep(c.ctx, pause); err != nil {
			return err
		}
		after, err := process.CPU(c.Gateway.PID())
		if err != nil {
			return err
		}
		if float64(after-before) < share*float64(pause) {
			return nil
		}
	}
	return fmt.Errorf("the gateway is not idle after %v", loadgen.Timeout)
}
