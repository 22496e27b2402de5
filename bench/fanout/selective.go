// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// selective measures the CPU per update with many watches whose label selectors differ,
// one of which matches each update, less the CPU of the same updates without watches. The
// baseline has one watch, which gets each update.
func selective(r *harness) error {
	s := r.sizes
	t, err := r.three(configMaps)
	if err != nil {
		return err
	}
	defer t.stop()
	paths := make([]string, s.selectors)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s%s&labelSelector=id%%3Dn%d", configMaps, fromNow, i)
	}
	bare, err := r.bare(t.direct)
	if err != nil {
		return err
	}
	defer bare.stop()
	rates := []float64{s.atDirect, s.atGateway}
	for round := range *rounds {
		for i, e := range []*endpoint{t.direct, t.secure} {
			if err := r.selectAt(round, e, paths, rates[i]); err != nil {
				return fmt.Errorf("%s: %w", e.via(), err)
			}
		}
		if err := r.selectBare(round, bare, s.atGateway); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	return nil
}

// selectAt measures one server, without the watches and with the watches.
func (r *harness) selectAt(round int, e *endpoint, paths []string, rate float64) error {
	updates := int(rate * r.sizes.selecting.Seconds())
	r.Say("round %d: %d selectors, %s", round+1, len(paths), e.via())
	none, err := r.watched([]*endpoint{e}, nil, 0, updates, rate)
	if err != nil {
		return err
	}
	used, err := r.measure([]*endpoint{e}, e, paths, updates, rate, func(set *streams.Set) (streams.Counts, error) {
		c, err := set.Wait(int64(updates), timeout)
		if each := int64(updates / objects); err == nil && c.Max != each {
			err = fmt.Errorf("a watch received %d events instead of %d", c.Max, each)
		}
		return c, err
	})
	if err != nil {
		return err
	}
	r.addSelective(e, updates, used[0], none[0])
	return nil
}

// selectBare measures the baseline, over HTTP/2, without its watch and with it.
func (r *harness) selectBare(round int, bare *bareWrites, rate float64) error {
	e, updates := bare.endpoints[0], int(rate*r.sizes.selecting.Seconds())
	r.Say("round %d: one watch, %s", round+1, e.via())
	none, err := bare.watched(e, 0, updates, rate)
	if err != nil {
		return err
	}
	used, err := bare.watched(e, 1, updates, rate)
	if err != nil {
		return err
	}
	r.addSelective(e, updates, used, none)
	return nil
}

func (r *harness) addSelective(e *endpoint, updates int, used, none time.Duration) {
	r.report.Add(fmt.Sprintf("Selective/%s", e.via()), updates,
		report.Value{Of: perOp(used-none, updates), Unit: "cpu-ns/update"},
		report.Value{Of: perOp(used, updates), Unit: "all-cpu-ns/update"})
}
