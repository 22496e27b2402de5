// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

// held opens a watch of each user, and holds them: the memory that they take, and the
// reviews that the API server gets.
func held(r *harness) error {
	if err := r.up(true); err != nil {
		return err
	}
	front, c, err := r.hold(r.people, 1)
	if err != nil {
		return err
	}
	r.front, r.crowd = front, c
	return nil
}

// few is held, with as many watches of a hundredth of the users.
func few(r *harness) error {
	if err := r.up(true); err != nil {
		return err
	}
	r.leave()
	front, c, err := r.hold(r.members()[:len(r.people)/perFew], perFew)
	if err != nil {
		return err
	}
	c.close()
	front.stop()
	return nil
}

// leave closes the watches that held left open.
func (r *harness) leave() {
	if r.crowd != nil {
		r.crowd.close()
		r.front.stop()
		r.crowd, r.front = nil, nil
	}
}

func (r *harness) hold(people []*person, per int) (front *endpoint, c *crowd, err error) {
	if front, err = r.shared(); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			front.stop()
		}
	}()
	name := heldName(len(people)*per, len(people))
	if err := front.warm(r.ctx, people[0].path()+"?resourceVersion=0", people[0].header()); err != nil {
		return nil, nil, err
	}
	before, err := front.memory()
	if err != nil {
		return nil, nil, err
	}
	r.Say("opening %d watches of %d users…", len(people)*per, len(people))
	m, err := r.meter(front)
	if err != nil {
		return nil, nil, err
	}
	if c, err = r.gather(front, people, per, (*person).path); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	opened, err := m.read()
	if err != nil {
		return nil, nil, err
	}
	r.report.Add("Open"+name, len(c.watch),
		report.Value{Of: opened.took.Seconds(), Unit: "s"},
		report.Value{Of: opened.counts.tokens, Unit: "tokenreviews"},
		report.Value{Of: opened.counts.rights, Unit: "accessreviews"},
		report.Value{Of: float64(opened.front) / float64(len(c.watch)), Unit: "cpu-ns/watch"},
		report.Value{Of: float64(opened.api) / float64(len(c.watch)), Unit: "upstream-cpu-ns/watch"})
	r.Say("holding them…")
	if err := report.Sleep(r.ctx, r.sizes.spread); err != nil {
		return nil, nil, err
	}
	if m, err = r.meter(front); err != nil {
		return nil, nil, err
	}
	if err := report.Sleep(r.ctx, r.sizes.hold); err != nil {
		return nil, nil, err
	}
	d, err := m.read()
	if err != nil {
		return nil, nil, err
	}
	after, err := front.memory()
	if err != nil {
		return nil, nil, err
	}
	// Each watch gets an event, so they are not only open but alive.
	for i := range namespaces {
		if err := r.update(namespaceName(i), 0); err != nil {
			return nil, nil, err
		}
	}
	missed := 0.0
	failed := c.delivered(1)
	if failed != nil {
		missed = max(1, float64(int64(len(c.watch))-c.lines()))
	}
	n := float64(len(c.watch))
	r.report.Add("Held"+name, len(c.watch),
		report.Value{Of: d.perMinute(d.counts.tokens, 1), Unit: "tokenreviews/min"},
		report.Value{Of: d.perMinute(d.counts.rights, 1), Unit: "accessreviews/min"},
		report.Value{Of: d.perMinute(d.counts.tokens, len(people)), Unit: "tokenreviews/min/user"},
		report.Value{Of: d.perMinute(d.counts.rights, len(people)), Unit: "accessreviews/min/user"},
		report.Value{Of: float64(c.cut.Load()), Unit: "cut"},
		report.Value{Of: missed, Unit: "missed"},
		report.Value{Of: after.RSS, Unit: "rss-B"},
		report.Value{Of: (after.RSS - before.RSS) / n, Unit: "rss-B/watch"},
		report.Value{Of: (after.Live - before.Live) / n, Unit: "live-B/watch"},
		report.Value{Of: share(d.front, d.took), Unit: "cpu-%"},
		report.Value{Of: share(d.api, d.took), Unit: "upstream-cpu-%"})
	if checks := d.counts.tokens / float64(len(people)); failed == nil && d.took > time.Minute && checks < d.took.Minutes()*0.8 {
		// Few reviews are no merit if rights are not checked.
		failed = fmt.Errorf("in %v a token was reviewed %.2f times", d.took, checks)
	}
	return front, c, failed
}

// share returns CPU time as a percentage of one core.
func share(cpu, of time.Duration) float64 { return 100 * cpu.Seconds() / of.Seconds() }

func heldName(watches, users int) string { return fmt.Sprintf("/watches=%d/users=%d", watches, users) }
