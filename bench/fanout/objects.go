// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// objectMemory measures the memory of a cached Pod in proportion to its JSON, from the
// gateway's whole resident set: some time after the list, and after updates, of which
// the window keeps a part; without and with recording.
func objectMemory(r *harness) error {
	s := r.sizes
	for round := range *rounds {
		for _, record := range []bool{false, true} {
			if err := r.holdObjects(round, s.cached, record); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *harness) holdObjects(round, n int, record bool) error {
	s := r.sizes
	r.Say("round %d: %d cached Pods, recorded: %v", round+1, n, record)
	var flags []string
	if record {
		dir, err := os.MkdirTemp("", "bench-fanout-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		flags = []string{"--data-dir", dir, "--record", "pods"}
	}
	g, err := r.load(n, streams.HTTP1, flags...)
	if err != nil {
		return err
	}
	defer g.stop()
	empty, err := g.resident()
	if err != nil {
		return err
	}
	if err := g.gateway.warm(r.ctx, pods); err != nil {
		return err
	}
	if err := report.Sleep(r.ctx, s.steady); err != nil {
		return err
	}
	steady, err := g.resident()
	if err != nil {
		return err
	}
	json, err := process.Metrics(g.gateway.debug, g.gateway.debugURL, "watchkeeper_resource_bytes")
	if err != nil {
		return err
	}
	if err := r.generate(g, 2*n, float64(2*n)/s.steady.Seconds()); err != nil {
		return err
	}
	if err := report.Sleep(r.ctx, s.steady); err != nil {
		return err
	}
	changed, err := g.resident()
	if err != nil {
		return err
	}
	live, err := g.gateway.memory()
	if err != nil {
		return err
	}
	r.report.Add(fmt.Sprintf("Object/via=gateway/record=%v", record), n,
		report.Value{Of: json[0] / float64(n), Unit: "json-B/object"},
		report.Value{Of: steady.all / float64(n), Unit: "rss-B/object"},
		report.Value{Of: steady.all / json[0], Unit: "rss/json"},
		report.Value{Of: steady.anonymous / json[0], Unit: "anon/json"},
		report.Value{Of: (steady.all - empty.all) / json[0], Unit: "more-rss/json"},
		report.Value{Of: changed.all / json[0], Unit: "updated-rss/json"},
		report.Value{Of: changed.anonymous / json[0], Unit: "updated-anon/json"},
		report.Value{Of: live.Live / json[0], Unit: "updated-live/json"})
	return nil
}

// resident is a resident set in bytes, and the part of it that is no file's.
type resident struct{ all, anonymous float64 }

func (g *testbed) resident() (m resident, err error) {
	if m.all, err = process.RSS(g.gateway.pid); err != nil {
		return m, err
	}
	m.anonymous, err = process.AnonymousRSS(g.gateway.pid)
	return m, err
}
