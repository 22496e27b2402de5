// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// perConnection is the number of streams of an HTTP/2 connection: the API server's
// limit, which is lower than the gateway's.
const perConnection = 100

// deliveries measures the servers' CPU per delivery to watches of a whole collection,
// less the CPU of the same updates without watches; and the API server's CPU if the
// watches are at the gateway.
func deliveries(r *harness) error {
	s := r.sizes
	t, err := r.three(configMaps)
	if err != nil {
		return err
	}
	defer t.stop()
	servers := t.all()
	bare, err := r.bare(t.direct)
	if err != nil {
		return err
	}
	defer bare.stop()
	for round := range *rounds {
		r.Say("round %d: no watches", round+1)
		none, err := r.watched(servers, nil, 0, s.updates, s.rate)
		if err != nil {
			return err
		}
		r.report.Add("Update/via=none/watches=0", s.updates, report.Value{Of: perOp(none[0], s.updates), Unit: "upstream-cpu-ns/op"})
		for i, e := range servers {
			type clients struct {
				at *endpoint
				n  int
			}
			all := []clients{{e, s.watches}}
			if i == 0 {
				all = append(all, clients{e, 1}) // one direct watch is the reference of all others
			}
			if e.target.Protocol == streams.HTTP2 {
				usual := *e
				usual.target.Protocol = streams.GoHTTP2
				all = append(all, clients{&usual, s.watches})
			}
			for _, c := range all {
				r.Say("round %d: %d watches, %s", round+1, c.n, c.at.via())
				used, err := r.watched(servers, c.at, c.n, s.updates, s.rate)
				if err != nil {
					return fmt.Errorf("%s: %w", c.at.via(), err)
				}
				r.report.Add(fmt.Sprintf("Update/%s/watches=%d", c.at.via(), c.n), s.updates,
					report.Value{Of: perOp(used[0], s.updates), Unit: "upstream-cpu-ns/op"})
				if c.n > 1 {
					r.report.Add("Delivery/"+c.at.via(), s.updates*c.n,
						report.Value{Of: perOp(used[i]-none[i], s.updates*c.n), Unit: "cpu-ns/delivery"})
				}
			}
		}
		for _, e := range bare.endpoints {
			r.Say("round %d: %d watches, %s", round+1, s.watches, e.via())
			used, err := bare.watched(e, s.watches, s.updates, s.rate)
			if err != nil {
				return fmt.Errorf("%s: %w", e.via(), err)
			}
			r.report.Add("Delivery/"+e.via(), s.updates*s.watches,
				report.Value{Of: perOp(used, s.updates*s.watches), Unit: "cpu-ns/delivery"})
		}
	}
	return nil
}

// watched opens n watches of all ConfigMaps at an endpoint, makes updates, and returns
// the CPU time of each server until all events are delivered.
func (r *harness) watched(servers []*endpoint, at *endpoint, n, updates int, rate float64) ([]time.Duration, error) {
	return r.measure(servers, at, same(n, configMaps+fromNow), updates, rate, func(set *streams.Set) (streams.Counts, error) {
		return set.WaitEach(int64(updates), timeout)
	})
}

// measure is watched for any paths. wait waits until all events are delivered.
func (r *harness) measure(servers []*endpoint, at *endpoint, paths []string, updates int, rate float64, wait func(*streams.Set) (streams.Counts, error)) ([]time.Duration, error) {
	var set *streams.Set
	if len(paths) > 0 {
		var err error
		if set, err = r.open(at.target, streams.Options{Paths: paths, PerConnection: perConnection}); err != nil {
			return nil, err
		}
		defer set.Close()
	} else if err := report.Sleep(r.ctx, settle); err != nil {
		return nil, err
	}
	clock, err := startClock(servers...)
	if err != nil {
		return nil, err
	}
	profiled := func() error { return nil }
	if at != nil {
		profiled = at.profile(fmt.Sprintf("%s-%s", r.Scenario, at.target.Protocol), time.Duration(float64(updates)/rate*float64(time.Second)))
	}
	if _, err := r.writer.updates(r.ctx, updates, rate); err != nil {
		return nil, err
	}
	if set != nil {
		if _, err := wait(set); err != nil {
			return nil, err
		}
	}
	if err := report.Sleep(r.ctx, settle/3); err != nil {
		return nil, err
	}
	used, err := clock.since()
	if err != nil {
		return nil, err
	}
	return used, profiled()
}

// perOp returns nanoseconds per operation.
func perOp(d time.Duration, n int) float64 { return float64(d) / float64(n) }
