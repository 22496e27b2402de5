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

// restart measures the time from the start of a gateway's process, after it was killed,
// until it serves many objects again. It must not list them upstream.
func restart(r *harness) error {
	s := r.sizes
	r.Say("%d Pods", s.many)
	c, err := r.load(s.many, true)
	if err != nil {
		return err
	}
	defer c.Stop()
	first, err := c.head()
	if err != nil {
		return err
	}
	last, err := c.generate(s.resumed, 10*s.slow)
	if err != nil {
		return err
	}
	if err := c.WaitMetric("watchkeeper_history_head_rv", float64(last)); err != nil {
		return err
	}
	before, err := c.lists()
	if err != nil {
		return err
	}
	c.Gateway.Kill()
	start := time.Now()
	if err := c.Gateway.Restart(); err != nil {
		return err
	}
	listening := time.Since(start)
	// The fake API server does not serve single namespaces, so the gateway has
	// answered if this succeeds.
	namespace := podOf(0).Namespace()
	for {
		n, _, err := c.timed(fmt.Sprintf("%s/api/v1/namespaces/%s/pods?resourceVersion=0", c.Gateway.URL, namespace), "application/json")
		if err == nil && n > 4000 {
			break
		}
		if time.Since(start) > loadgen.Timeout || c.ctx.Err() != nil {
			return fmt.Errorf("nothing is served %v after the start: %d bytes, %w", loadgen.Timeout, n, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	serving := time.Since(start)
	set, err := c.watch(c.Gateway.URL, fmt.Sprintf("%s?watch=1&resourceVersion=%d", pods, first), 1, nil)
	if err != nil {
		return err
	}
	defer set.Close()
	if _, err := set.WaitEach(int64(last-first), loadgen.Timeout); err != nil {
		return fmt.Errorf("a watch from an RV before the restart: %w", err)
	}
	resumed := time.Since(start)
	after, err := c.lists()
	if err != nil {
		return err
	}
	rss, err := process.RSS(c.Gateway.PID())
	if err != nil {
		return err
	}
	r.report.Add("Restart", s.many,
		report.Value{Of: float64(listening), Unit: "listening-ns"},
		report.Value{Of: float64(serving), Unit: "serving-ns"},
		report.Value{Of: float64(resumed), Unit: "resumed-ns"},
		report.Value{Of: float64(after - before), Unit: "lists"},
		report.Value{Of: rss, Unit: "rss-B"})
	return nil
}
