// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// saturation measures how many events a server delivers per second when there are
// always more: updates as fast as the API server accepts them, and all watches at the API
// server or at the gateway.
func saturation(r *harness) error {
	s := r.sizes
	t, err := r.three(configMaps)
	if err != nil {
		return err
	}
	defer t.stop()
	var failed []error
	for round := range *rounds {
		for _, e := range t.all() {
			r.Say("round %d: updates as fast as possible, %s", round+1, e.via())
			if err := r.saturate("Saturation", e, s.watches, 0); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", e.via(), err))
			}
			if e == t.plain {
				continue
			}
			r.Say("round %d: 20 updates/s to %d watches, %s", round+1, 2*s.watches, e.via())
			if err := r.saturate("Strain", e, 2*s.watches, 20); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", e.via(), err))
			}
		}
	}
	return errors.Join(failed...)
}

// saturate makes updates for some seconds, at a rate, or as fast as possible if the
// rate is 0. The time of the deliveries ends with the last one. A watch that the server
// ends early is no failure but a result: the API server does so under load.
func (r *harness) saturate(name string, e *endpoint, watches int, rate float64) error {
	set, err := r.open(e.target, streams.Options{Paths: same(watches, configMaps+fromNow), PerConnection: perConnection})
	if err != nil {
		return err
	}
	defer set.Close()
	start := time.Now()
	ctx, cancel := context.WithTimeout(r.ctx, r.sizes.unhindered)
	defer cancel()
	n, err := r.writer.updates(ctx, 1<<30, rate)
	updating := time.Since(start).Seconds()
	if err != nil {
		return err
	}
	counts, err := set.WaitEach(int64(n), timeout)
	if err != nil && counts.Cut == 0 {
		return err
	}
	r.report.Add(fmt.Sprintf("%s/%s/watches=%d", name, e.via(), watches), n,
		report.Value{Of: float64(counts.Total) / time.Since(start).Seconds(), Unit: "deliveries/s"},
		report.Value{Of: float64(n) / updating, Unit: "updates/s"},
		report.Value{Of: float64(counts.Cut), Unit: "cut"})
	return nil
}
