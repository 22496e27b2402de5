// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// idleMemory measures the memory of an idle watch: that of the server with many idle
// watches, less that without, divided by their number. Each round has a new gateway.
// The API server keeps running and returns no memory to the system, so its resident set
// is compared with the one before the first round.
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
	var first float64
	for round := range *rounds {
		if err := r.idle(round, direct, s.idle, &first); err != nil {
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

// idle measures n idle watches of one server. first is the server's resident set
// without watches in the first round; idle sets it if it is 0.
func (r *harness) idle(round int, e *endpoint, n int, first *float64) error {
	r.Say("round %d: %d idle watches, %s", round+1, n, e.via())
	if err := e.warm(r.ctx, configMaps); err != nil {
		return err
	}
	before, err := e.memory()
	if err != nil {
		return err
	}
	if *first == 0 {
		*first = before.RSS
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
		report.Value{Of: per(after.RSS, *first), Unit: "rss-B/watch"})
	return nil
}
