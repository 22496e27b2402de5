// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// held opens as many watches as the machine can hold, on separate connections and over
// HTTP/2, and checks that each receives every event of the fake API server.
func held(r *harness) error {
	s := r.sizes
	return errors.Join(
		r.hold(streams.HTTP1, s.own, 0, 2),
		r.hold(streams.HTTP2, s.shared, 500, 0.5))
}

func (r *harness) hold(p streams.Protocol, n, perConnection int, rate float64) error {
	s := r.sizes
	name := fmt.Sprintf("Held/via=gateway/proto=%s", p)
	r.Say("%d watches, %s", n, p)
	g, err := r.loaded(1000, p)
	if err != nil {
		return err
	}
	defer g.stop()
	before, err := g.gateway.memory()
	if err != nil {
		return err
	}
	set, err := r.open(g.gateway.target, streams.Options{Paths: same(n, pods+fromNow), PerConnection: perConnection})
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	defer set.Close()
	r.Say("the watches are open")
	clock, err := startClock(g.gateway)
	if err != nil {
		return err
	}
	updates := max(2, int(s.holding.Seconds()*rate))
	if err := r.generate(g, updates, rate); err != nil {
		return err
	}
	counts, failed := set.WaitEach(int64(updates), timeout)
	used, err := clock.since()
	if err != nil {
		return err
	}
	after, err := g.gateway.memory()
	if err != nil {
		return err
	}
	lost := 0.0
	if failed != nil {
		failed = fmt.Errorf("%s: %w", p, failed)
		lost = float64(n)*float64(updates) - float64(counts.Total)
	}
	r.report.Add(name, updates,
		report.Value{Of: float64(n - counts.Cut), Unit: "watches"},
		report.Value{Of: float64(counts.Cut), Unit: "cut"},
		report.Value{Of: lost, Unit: "lost"},
		report.Value{Of: lost + float64(counts.Cut), Unit: "missed"},
		report.Value{Of: perOp(used[0], updates*n), Unit: "cpu-ns/delivery"},
		report.Value{Of: after.RSS, Unit: "rss-B"},
		report.Value{Of: (after.RSS - before.RSS) / float64(n), Unit: "rss-B/watch"},
		report.Value{Of: (after.Live - before.Live) / float64(n), Unit: "live-B/watch"})
	return failed
}
