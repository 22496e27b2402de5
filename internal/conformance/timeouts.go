// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var timeoutRules = rules("§6",
	TimeoutSecondsIsExact, TimeoutSecondsZero, EventsHonourLimit, EventsAreWatched, LongSilence,
)

// TimeoutSecondsIsExact: §6, a watch does not end before its timeoutSeconds,
// and then does, cleanly.
func TimeoutSecondsIsExact(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, beacons, 0)
	if err != nil {
		return err
	}
	var waits []func() error
	for _, seconds := range []int{1, 3, 6} {
		waits = append(waits, func() error {
			start := time.Now()
			w, err := e.watch(ctx, fmt.Sprintf("%s?watch=1&timeoutSeconds=%d&resourceVersion=%s", beacons, seconds, rv))
			if err != nil {
				return err
			}
			defer w.Close()
			for _, s := range []*compare.Stream{w.Want, w.Got} {
				_, err := s.Until(ctx, nil)
				if took := time.Since(start); err != nil || took < time.Duration(seconds)*time.Second {
					return &compare.Difference{Request: beacons, What: "end of a watch", Want: fmt.Sprint(seconds, " s"), Got: fmt.Sprint(took, err)}
				}
			}
			return nil
		})
	}
	return together(waits...)
}

// TimeoutSecondsZero: §6, 0 is as if there were none: the watch goes on.
func TimeoutSecondsZero(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	return e.live(ctx, p, "timeoutSeconds=0&resourceVersion="+p.rv, nil)
}

// EventsHonourLimit: §6, of Events there is no watch cache: RV 0 with a limit
// is a page.
func EventsHonourLimit(ctx context.Context, e *Env) error {
	const path = core + "events?fieldSelector=metadata.name!=x&resourceVersion=0&limit=1"
	a, err := e.ask(ctx, path, code(200), has(`"continue":"ey`), mask(compare.ListRV))
	if err != nil {
		return err
	}
	l, err := readList(a)
	if err != nil || len(l.Items) != 1 {
		return errors.Join(err, fmt.Errorf("%d items", len(l.Items)))
	}
	return e.same(ctx, core+"events?fieldSelector=metadata.name!=x&limit=1&continue="+l.Metadata.Continue, code(200))
}

// EventsAreWatched: §6, Events are listed and watched all the same, in both
// groups.
func EventsAreWatched(ctx context.Context, e *Env) error {
	var errs []error
	for path, name := range map[string]string{core + "events": "core", "/apis/events.k8s.io/v1/namespaces/conf/events": "group"} {
		rv, err := e.at(ctx, path, 0)
		if err != nil {
			return err
		}
		errs = append(errs,
			e.same(ctx, path+"?"+exactly(rv)+"&fieldSelector=metadata.name="+name, items(name)),
			e.same(ctx, path+"/"+name+anyVersion, kind("Event")),
			e.replay(ctx, path+"?watch=1&fieldSelector=metadata.name="+name, events("ADDED "+name)),
			e.same(ctx, path+"?watch=1&timeoutSeconds=1&fieldSelector=metadata.name="+name, events("ADDED "+name)))
	}
	return errors.Join(errs...)
}

// LongSilence: §6, a watch on which nothing happens stays open: an event after
// half a minute still comes.
func LongSilence(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?watch=1&resourceVersion="+p.rv)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := sleep(ctx, 30*time.Second); err != nil {
		return err
	}
	if _, err := e.steps(ctx, p.mark()); err != nil {
		return err
	}
	frames, err := w.Until(ctx, marked)
	if err != nil {
		return err
	}
	return sequence(frames, "ADDED z-mark")
}
