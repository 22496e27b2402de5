// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/fanout/streams"
	"github.com/watchkeeper/watchkeeper/bench/fanout/tally"
)

// selective measures the CPU per update with watches that each have a label
// selector of their own, of which one matches each update; over what the same
// updates cost without them.
func selective(r *rig) error {
	s := r.sizes
	c, err := r.cluster()
	if err != nil {
		return err
	}
	direct, err := r.direct()
	if err != nil {
		return err
	}
	secure, stop, err := r.gateway(c, streams.HTTP2)
	if err != nil {
		return err
	}
	defer stop()
	paths := make([]string, s.selectors)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s%s&labelSelector=id%%3Dn%d", configMaps, fromNow, i)
	}
	for i, e := range []*endpoint{direct, secure} {
		if err := e.warm(r.ctx, configMaps); err != nil {
			return err
		}
		rate := []float64{s.atDirect, s.atGateway}[i]
		updates := int(rate * 10)
		for round := range *rounds {
			r.say("round %d: %d selectors, %s", round+1, len(paths), e.via())
			none, err := r.watched([]*endpoint{e}, nil, 0, updates, rate)
			if err != nil {
				return err
			}
			used, err := r.measure([]*endpoint{e}, e, paths, updates, rate, func(set *streams.Set) (streams.Counts, error) {
				return set.Wait(int64(updates), patience)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", e.via(), err)
			}
			r.tally.Add(fmt.Sprintf("Selective/%s", e.via()), updates,
				tally.Value{Of: perOp(used[0]-none[0], updates), Unit: "cpu-ns/update"},
				tally.Value{Of: perOp(used[0], updates), Unit: "all-cpu-ns/update"})
		}
	}
	return nil
}
