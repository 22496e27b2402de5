// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

// everywhere is the path of the ConfigMaps of all namespaces.
func everywhere(*person) string { return "/api/v1/configmaps" }

// upstream measures the API server's CPU for the same updates: without a watch, with the
// watches of the group's members, and with these at the gateway; also with as many
// watches of a tenth of the members at the gateway.
func upstream(r *harness) error {
	if err := r.up(false); err != nil {
		return err
	}
	all := r.members()
	some := all[:len(all)/10]
	for round := range *rounds {
		r.Say("round %d: no watches", round+1)
		none, err := r.updating(nil, nil, 0)
		if err != nil {
			return err
		}
		r.Say("round %d: %d watches, direct", round+1, len(all))
		direct, err := r.updating(r.api, all, 1)
		if err != nil {
			return err
		}
		r.add("Upstream/via=none", none)
		r.add(fmt.Sprintf("Upstream/via=direct/watches=%d/users=%d", len(all), len(all)), direct)
		for _, people := range [][]*person{all, some} {
			r.Say("round %d: %d watches of %d users, gateway", round+1, len(all), len(people))
			front, err := r.shared()
			if err != nil {
				return err
			}
			used, err := r.updating(front, people, len(all)/len(people))
			front.stop()
			if err != nil {
				return err
			}
			r.add(fmt.Sprintf("Upstream/via=gateway/watches=%d/users=%d", len(all), len(people)), used)
			r.report.Add(fmt.Sprintf("Share/users=%d", len(people)), r.updates(),
				report.Value{Of: float64(used.api-none.api) / float64(direct.api-none.api), Unit: "of-direct"})
		}
	}
	return nil
}

func (r *harness) add(name string, d reading) {
	r.report.Add(name, r.updates(),
		report.Value{Of: float64(d.api) / float64(r.updates()), Unit: "upstream-cpu-ns/op"},
		report.Value{Of: float64(d.front) / float64(r.updates()), Unit: "gateway-cpu-ns/op"},
		report.Value{Of: d.counts.tokens + d.counts.rights, Unit: "reviews"})
}

// updates is the number of updates of a measurement.
func (r *harness) updates() int { return int(r.sizes.span.Seconds() * r.sizes.rate) }

// updating makes updates, while per watches of each user are open at a server; nil is no
// watches.
func (r *harness) updating(at *endpoint, people []*person, per int) (reading, error) {
	if at == nil {
		if err := report.Sleep(r.ctx, settle); err != nil {
			return reading{}, err
		}
		return r.metered(nil, func() error { return nil })
	}
	if err := at.warm(r.ctx, everywhere(nil)+"?resourceVersion=0", people[0].header()); err != nil {
		return reading{}, err
	}
	c, err := r.gather(at, people, per, everywhere)
	if err != nil {
		return reading{}, err
	}
	defer c.close()
	front, pause := at, r.sizes.spread
	if at == r.api {
		front, pause = nil, settle
	}
	if err := report.Sleep(r.ctx, pause); err != nil {
		return reading{}, err
	}
	return r.metered(front, func() error { return c.delivered(int64(r.updates())) })
}

// metered measures updates, until wait returns.
func (r *harness) metered(front *endpoint, wait func() error) (reading, error) {
	m, err := r.meter(front)
	if err != nil {
		return reading{}, err
	}
	start := time.Now()
	for i := range r.updates() {
		if err := report.Sleep(r.ctx, time.Until(start.Add(time.Duration(float64(i)/r.sizes.rate*float64(time.Second))))); err != nil {
			return reading{}, err
		}
		if err := r.update(namespaceName(0), i%objects); err != nil {
			return reading{}, err
		}
	}
	if err := wait(); err != nil {
		return reading{}, err
	}
	return m.read()
}
