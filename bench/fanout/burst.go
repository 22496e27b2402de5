// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

// bursts measures how many events a gateway delivers per second when the fake API server
// sends many at once, and how many a process delivers that only writes the same bytes.
func bursts(r *harness) error {
	var failed []error
	for round := range *rounds {
		for _, p := range []streams.Protocol{streams.HTTP2, streams.HTTP1} {
			r.Say("round %d: %s", round+1, p)
			if err := r.burst(p); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", p, err))
			}
		}
	}
	return errors.Join(failed...)
}

// burst measures the gateway over one protocol, and then the baseline.
func (r *harness) burst(p streams.Protocol) error {
	g, err := r.loaded(1000, p)
	if err != nil {
		return err
	}
	defer g.stop()
	pod := synthetic.Pod(0)
	size, err := r.eventSize(g.gateway, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", pod.Namespace, pod.Name))
	if err != nil {
		return err
	}
	if err := r.burstAt(g.gateway, func(n int) error { return r.generate(g, n, 0) }); err != nil {
		return err
	}
	bare, endpoints, err := startBare(size)
	if err != nil {
		return err
	}
	defer bare.Stop()
	i := slices.IndexFunc(endpoints, func(e *endpoint) bool { return e.target.Protocol == p })
	return r.burstAt(endpoints[i], bare.Events)
}

// burstAt opens watches of all Pods at an endpoint, makes events, and counts until each
// watch has all of them.
func (r *harness) burstAt(e *endpoint, generate func(n int) error) error {
	s := r.sizes
	set, err := r.open(e.target, streams.Options{Paths: same(s.watches, pods+fromNow), PerConnection: perConnection})
	if err != nil {
		return err
	}
	defer set.Close()
	clock, err := startClock(e)
	if err != nil {
		return err
	}
	profiled := e.profile(fmt.Sprintf("burst-%s", e.target.Protocol), 5*time.Second)
	start := time.Now()
	if err := generate(s.burst); err != nil {
		return err
	}
	counts, err := set.WaitEach(int64(s.burst), 2*timeout)
	if err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	used, err := clock.since()
	if err != nil {
		return err
	}
	r.report.Add(fmt.Sprintf("Burst/%s/watches=%d", e.via(), s.watches), s.burst,
		report.Value{Of: float64(counts.Total) / took, Unit: "deliveries/s"},
		report.Value{Of: perOp(used[0], int(counts.Total)), Unit: "cpu-ns/delivery"})
	return profiled()
}
