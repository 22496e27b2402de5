// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// A form is a request that is answered from the cache.
type form struct{ name, path string }

func forms(p *person) []form {
	return []form{
		{"list", p.path() + "?resourceVersion=0"},
		{"get", p.path() + "/config-0?resourceVersion=0"},
	}
}

// A mode is a server to which cached requests are sent.
type mode struct {
	name   string
	at     *endpoint
	header map[string]string
}

// cached measures the CPU of the gateway per cached request, in shared mode with a token
// and in local mode without one, in turn; and that of the API server.
func cached(r *harness) error {
	if err := r.up(false); err != nil {
		return err
	}
	shared, err := r.shared()
	if err != nil {
		return err
	}
	defer shared.stop()
	local, err := r.local()
	if err != nil {
		return err
	}
	defer local.stop()
	p := r.people[0]
	modes := []mode{{"local", local, nil}, {"shared", shared, p.header()}, {"direct", r.api, p.header()}}
	for _, m := range modes {
		for _, f := range forms(p) {
			if err := m.at.warm(r.ctx, f.path, m.header); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	for pair := range r.sizes.pairs {
		r.Say("pair %d", pair+1)
		for _, protocol := range []streams.Protocol{streams.HTTP1, streams.HTTP2} {
			for _, f := range forms(p) {
				used, size := map[string]float64{}, map[string]int64{}
				for i := range modes {
					if pair%2 == 1 { // nor is one mode always the first
						i = len(modes) - 1 - i
					}
					m := modes[i]
					cpu, n, err := r.request(m, protocol, f)
					if err != nil {
						return fmt.Errorf("%s, %s, %s: %w", m.name, protocol, f.name, err)
					}
					used[m.name], size[m.name] = cpu, n
				}
				if size["shared"] != size["local"] || size["shared"] != size["direct"] {
					return fmt.Errorf("%s, %s: the answers differ in size: %v", protocol, f.name, size)
				}
				r.report.Add(fmt.Sprintf("Access/proto=%s/form=%s", protocol, f.name), r.sizes.requests,
					report.Value{Of: used["shared"] - used["local"], Unit: "cpu-ns/op"})
			}
		}
	}
	return nil
}

// request sends many requests, one after the other on one connection, and returns the
// server's CPU for each in nanoseconds, and the size of an answer.
func (r *harness) request(m mode, protocol streams.Protocol, f form) (cpu float64, size int64, err error) {
	target := m.at.target
	target.Protocol, target.Header = protocol, m.header
	client, err := streams.Dial(r.ctx, target)
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	if _, err := client.Get(f.path, nil); err != nil {
		return 0, 0, err
	}
	profiled := func() error { return nil }
	if m.at != r.api {
		profiled = m.at.profile(fmt.Sprintf("%s-%s-%s", m.name, protocol, f.name), 2*time.Second)
	}
	reads, err := r.counts()
	if err != nil {
		return 0, 0, err
	}
	before, err := m.at.cpu()
	if err != nil {
		return 0, 0, err
	}
	n := r.sizes.requests
	for range n {
		a, err := client.Get(f.path, nil)
		if err != nil {
			return 0, 0, err
		}
		size = a.Bytes
	}
	after, err := m.at.cpu()
	if err != nil {
		return 0, 0, err
	}
	now, err := r.counts()
	if err != nil {
		return 0, 0, err
	}
	if passed := now.since(reads).reads; m.at != r.api && passed > float64(n)/20 {
		return 0, 0, fmt.Errorf("%.0f of %d requests reached the API server", passed, n)
	}
	cpu = float64(after-before) / float64(n)
	r.report.Add(fmt.Sprintf("Request/mode=%s/proto=%s/form=%s", m.name, protocol, f.name), n,
		report.Value{Of: cpu, Unit: "cpu-ns/op"}, report.Value{Of: float64(size), Unit: "B/op"})
	return cpu, size, profiled()
}
