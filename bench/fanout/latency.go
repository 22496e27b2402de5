// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// lagging is the number of watches when latency is measured.
const lagging = 100

// latency measures how much later the watches of an endpoint receive an event than one
// watch directly at the API server: at 100 updates per second with kube-apiserver, and
// at 1,000, which kube-apiserver does not reach, with the fake API server.
func latency(r *harness) error {
	t, err := r.three(configMaps)
	if err != nil {
		return err
	}
	defer t.stop()
	var failed []error
	for round := range *rounds {
		for _, e := range []*endpoint{t.direct, t.secure} {
			const rate = 100
			r.Say("round %d: %d updates/s, %s", round+1, rate, e.via())
			err := r.lag(t.direct.target, e, configMaps, rate, func(n int) (int, error) {
				return r.writer.updates(r.ctx, n, rate)
			})
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", e.via(), err))
			}
		}
		if err := r.latencyOfFakeAPI(round); err != nil {
			failed = append(failed, fmt.Errorf("fake API server: %w", err))
		}
	}
	return errors.Join(failed...)
}

func (r *harness) latencyOfFakeAPI(round int) error {
	const rate = 1000
	r.Say("round %d: %d updates/s of the fake API server", round+1, rate)
	g, err := r.loaded(1000, streams.HTTP2)
	if err != nil {
		return err
	}
	defer g.stop()
	return r.lag(g.target, g.gateway, pods, rate, func(n int) (int, error) { return n, r.generate(g, n, rate) })
}

// lag measures the latency during some seconds of updates. An event arrives when the
// kernel has received its last byte at the client's socket, so it does not wait for its
// reader; and see yield. That is the same at every endpoint.
func (r *harness) lag(reference streams.Target, e *endpoint, path string, rate float64, update func(n int) (int, error)) error {
	n := int(rate * r.sizes.lagging.Seconds())
	first := newArrivals(1)
	of, err := streams.Open(r.ctx, reference, streams.Options{Paths: same(1, path+fromNow), Observe: first.observe})
	if err != nil {
		return err
	}
	defer of.Close()
	later := newArrivals(lagging)
	set, err := r.open(e.target, streams.Options{Paths: same(lagging, path+fromNow), PerConnection: perConnection, Observe: later.observe})
	if err != nil {
		return err
	}
	defer set.Close()
	restore, err := r.yield(rate)
	if err != nil {
		return err
	}
	defer func() { _ = restore() }() // another error is reported
	start := time.Now()
	n, err = update(n)
	if err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	if _, err := of.WaitEach(int64(n), timeout); err != nil {
		return fmt.Errorf("the reference watch: %w", err)
	}
	if _, err := set.WaitEach(int64(n), timeout); err != nil {
		return err
	}
	if err := restore(); err != nil {
		return err
	}
	of.Close()
	set.Close()
	lags, err := later.lags(first)
	if err != nil {
		return err
	}
	r.report.Add(fmt.Sprintf("Latency/%s/rate=%.0f", e.via(), rate), n*lagging,
		report.Value{Of: report.Percentile(lags, 50), Unit: "p50-ms"},
		report.Value{Of: report.Percentile(lags, 99), Unit: "p99-ms"},
		report.Value{Of: float64(n) / took, Unit: "updates/s"})
	return nil
}

// maxYieldRate is the rate of updates up to which the clients leave the servers the
// processors. At more, the sockets would fill meanwhile.
const maxYieldRate = 100

// yield makes this process, which has the clients, run only when the servers leave a
// processor, until restore is called: no server waits for one because of its clients.
func (r *harness) yield(rate float64) (restore func() error, err error) {
	if rate > maxYieldRate {
		return func() error { return nil }, nil
	}
	restore, err = process.Yield()
	if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		r.Say("the clients do not yield to the servers: %v", err)
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(restore), nil
}

// arrivals has, for each watch, the time at which each event arrived.
type arrivals [][]arrival

type arrival struct {
	rv uint64
	at time.Time
}

func newArrivals(watches int) arrivals { return make(arrivals, watches) }

// observe records the arrival of an event. The events of one watch must come in
// sequence.
func (a arrivals) observe(watch int, rv uint64, at time.Time) {
	a[watch] = append(a[watch], arrival{rv, at})
}

// lags returns, for each event of each watch, how many milliseconds later it arrived
// than at the one watch of reference. All watches must be closed.
func (a arrivals) lags(reference arrivals) ([]float64, error) {
	first := map[uint64]time.Time{}
	for _, e := range reference[0] {
		first[e.rv] = e.at
	}
	var lags []float64
	for _, watch := range a {
		for _, e := range watch {
			at, ok := first[e.rv]
			if !ok {
				return nil, fmt.Errorf("the reference watch did not receive the event at %d", e.rv)
			}
			lags = append(lags, float64(e.at.Sub(at))/float64(time.Millisecond))
		}
	}
	return lags, nil
}
