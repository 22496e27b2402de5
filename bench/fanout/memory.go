// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// idleMemory measures what a watch costs that nothing comes to: what the server
// holds with many of them, less what it held without, for each. The gateway is
// a new one each time. The API server goes on, and keeps what it has had from
// the system: its resident set is compared with that before the first round.
func idleMemory(r *harness) error {
	s := r.sizes
	c, err := r.cluster()
	if err != nil {
		return err
	}
	direct, err := r.direct()
	if err != nil {
		return err
	}
	var young float64
	for round := range *rounds {
		if err := r.idle(round, direct, s.idle, &young); err != nil {
			return fmt.Errorf("%s: %w", direct.via(), err)
		}
		for _, p := range []streams.Protocol{streams.HTTP2, streams.HTTP1} {
			gateway, stop, err := r.gateway(c, p)
			if err != nil {
				return err
			}
			err = r.idle(round, gateway, s.idle, new(float64))
			stop()
			if err != nil {
				return fmt.Errorf("%s: %w", gateway.via(), err)
			}
		}
	}
	return nil
}

// idle keeps the resident set before in young, unless there is one.
func (r *harness) idle(round int, e *endpoint, n int, young *float64) error {
	r.say("round %d: %d idle watches, %s", round+1, n, e.via())
	if err := e.warm(r.ctx, configMaps); err != nil {
		return err
	}
	before, err := e.memory()
	if err != nil {
		return err
	}
	if *young == 0 {
		*young = before.RSS
	}
	set, err := r.open(e.target, streams.Options{Paths: same(n, configMaps+fromNow), PerConnection: perConnection})
	if err != nil {
		return err
	}
	defer set.Close()
	after, err := e.memory()
	if err != nil {
		return err
	}
	if _, err := set.Wait(0, timeout); err != nil {
		return err
	}
	per := func(a, b float64) float64 { return (a - b) / float64(n) }
	r.report.Add("IdleWatch/"+e.via(), n,
		report.Value{Of: per(after.Live, before.Live), Unit: "live-B/watch"},
		report.Value{Of: per(after.RSS, *young), Unit: "rss-B/watch"})
	return nil
}
