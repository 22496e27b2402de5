// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

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

// batch is how many requests a server gets in a row. The machine's speed changes from one
// second to the next, so the servers take turns.
const batch = 400

// connections is how many connections a server gets requests on at once.
const connections = 8

// A kind of request is a form over a protocol.
type kind struct {
	protocol streams.Protocol
	form
}

func kinds(p *person) (all []kind) {
	for _, protocol := range []streams.Protocol{streams.HTTP1, streams.HTTP2} {
		for _, f := range forms(p) {
			all = append(all, kind{protocol, f})
		}
	}
	return all
}

// cached measures the CPU of the gateway per cached request, in local mode without a token
// and in shared mode with one, in turn; and that of the API server.
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
	// The gateway lets its heap grow further while collections take much of its CPU.
	for began := time.Now(); time.Since(began) < r.sizes.busy; {
		for _, k := range kinds(p) {
			if _, err := r.turns(modes[:2], k, batch); err != nil {
				return fmt.Errorf("%s, %s: %w", k.protocol, k.name, err)
			}
		}
	}
	for pair := range r.sizes.pairs {
		r.Say("pair %d", pair+1)
		for _, k := range kinds(p) {
			if err := r.compare(modes, k); err != nil {
				return fmt.Errorf("%s, %s: %w", k.protocol, k.name, err)
			}
		}
	}
	return nil
}

// compare measures requests of a kind in all modes.
func (r *harness) compare(modes []mode, k kind) error {
	var profiles []func() error
	for _, m := range modes[:2] {
		profiles = append(profiles, m.at.profile(fmt.Sprintf("%s-%s-%s", m.name, k.protocol, k.name), 5*time.Second))
	}
	reads, err := r.counts()
	if err != nil {
		return err
	}
	n := r.sizes.requests
	of, err := r.turns(modes[:2], k, n)
	if err != nil {
		return err
	}
	now, err := r.counts()
	if err != nil {
		return err
	}
	if passed := now.since(reads).reads; passed > float64(n)/20 {
		return fmt.Errorf("%.0f of %d requests reached the API server", passed, 2*n)
	}
	alone, err := r.turns(modes[2:], k, n) // it would slow down the others
	if err != nil {
		return err
	}
	of = append(of, alone...)
	local, shared, direct := of[0], of[1], of[2]
	if shared.size != local.size || shared.size != direct.size {
		return fmt.Errorf("the answers have %d, %d and %d bytes", local.size, shared.size, direct.size)
	}
	for i, m := range modes {
		r.report.Add(fmt.Sprintf("Request/mode=%s/proto=%s/form=%s", m.name, k.protocol, k.name), n,
			report.Value{Of: report.Median(of[i].cpu), Unit: "cpu-ns/op"}, report.Value{Of: float64(of[i].size), Unit: "B/op"})
	}
	r.report.Add(fmt.Sprintf("Access/proto=%s/form=%s", k.protocol, k.name), n,
		report.Value{Of: report.Median(more(shared.cpu, local.cpu)), Unit: "cpu-ns/op"})
	for _, saved := range profiles {
		if err := saved(); err != nil {
			return err
		}
	}
	return nil
}

// answered is the server's CPU for a request in each batch, in nanoseconds, and the size of
// an answer.
type answered struct {
	cpu  []float64
	size int64
}

// more returns by how much each of a is more than that of b.
func more(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// turns sends n requests to each server, over some connections at once.
func (r *harness) turns(modes []mode, k kind, n int) ([]answered, error) {
	clients := make([][]*streams.Client, len(modes))
	for i, m := range modes {
		target := m.at.target
		target.Protocol, target.Header = k.protocol, m.header
		for range connections {
			c, err := streams.Dial(r.ctx, target)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			if _, err := c.Get(k.path, nil); err != nil { // which is not counted
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			clients[i] = append(clients[i], c)
		}
	}
	of := make([]answered, len(modes))
	for turn := 0; n > 0; turn++ {
		some := min(n, batch)
		n -= some
		for i := range modes {
			if turn%2 == 1 { // nor is one mode always the first
				i = len(modes) - 1 - i
			}
			if err := of[i].add(modes[i].at, clients[i], k.path, some); err != nil {
				return nil, fmt.Errorf("%s: %w", modes[i].name, err)
			}
		}
	}
	return of, nil
}

// add sends n requests to a server.
func (a *answered) add(to *endpoint, clients []*streams.Client, path string, n int) error {
	before, err := to.cpu()
	if err != nil {
		return err
	}
	sizes, sending := make([]int64, len(clients)), errgroup.Group{}
	each := max(1, n/len(clients))
	for i, c := range clients {
		sending.Go(func() error {
			for range each {
				answer, err := c.Get(path, nil)
				if err != nil {
					return err
				}
				sizes[i] = answer.Bytes
			}
			return nil
		})
	}
	if err := sending.Wait(); err != nil {
		return err
	}
	after, err := to.cpu()
	a.size, a.cpu = sizes[0], append(a.cpu, float64(after-before)/float64(each*len(clients)))
	return err
}
