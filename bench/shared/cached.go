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
		used := map[string]map[kind]answered{}
		for i := range modes {
			if pair%2 == 1 { // nor is one mode always the first
				i = len(modes) - 1 - i
			}
			m := modes[i]
			if used[m.name], err = r.answers(m, kinds(p)); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		for _, k := range kinds(p) {
			local, shared, direct := used["local"][k], used["shared"][k], used["direct"][k]
			if shared.size != local.size || shared.size != direct.size {
				return fmt.Errorf("%s, %s: the answers have %d, %d and %d bytes", k.protocol, k.name, local.size, shared.size, direct.size)
			}
			r.report.Add(fmt.Sprintf("Access/proto=%s/form=%s", k.protocol, k.name), r.sizes.requests,
				report.Value{Of: shared.cpu - local.cpu, Unit: "cpu-ns/op"})
		}
	}
	return nil
}

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

// answered is the server's CPU for each request, in nanoseconds, and the size of an answer.
type answered struct {
	cpu  float64
	size int64
}

// answers measures requests of each kind to a server which has been busy with such for a
// time: the gateway lets its heap grow further while collections take much of the CPU.
func (r *harness) answers(m mode, all []kind) (map[kind]answered, error) {
	for began := time.Now(); time.Since(began) < r.sizes.busy; {
		for _, k := range all {
			if _, err := r.send(m, k, r.sizes.requests/4, func() error { return nil }); err != nil {
				return nil, err
			}
		}
	}
	of := map[kind]answered{}
	for _, k := range all {
		a, err := r.request(m, k)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", k.protocol, k.name, err)
		}
		of[k] = a
	}
	return of, nil
}

// send sends requests, one after the other on one connection. It calls begin after the
// first, which is not one of n, and returns the size of the last answer.
func (r *harness) send(m mode, k kind, n int, begin func() error) (size int64, err error) {
	target := m.at.target
	target.Protocol, target.Header = k.protocol, m.header
	client, err := streams.Dial(r.ctx, target)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for i := range n + 1 {
		a, err := client.Get(k.path, nil)
		if err != nil {
			return 0, err
		}
		if size = a.Bytes; i == 0 {
			if err := begin(); err != nil {
				return 0, err
			}
		}
	}
	return size, nil
}

// request measures many requests of a kind. With -profiles they are sent again, profiled.
func (r *harness) request(m mode, k kind) (of answered, err error) {
	var before time.Duration
	var reads counts
	n := r.sizes.requests
	of.size, err = r.send(m, k, n, func() (err error) {
		if reads, err = r.counts(); err == nil {
			before, err = m.at.cpu()
		}
		return err
	})
	if err != nil {
		return of, err
	}
	after, err := m.at.cpu()
	if err != nil {
		return of, err
	}
	now, err := r.counts()
	if err != nil {
		return of, err
	}
	if passed := now.since(reads).reads; m.at != r.api && passed > float64(n)/20 {
		return of, fmt.Errorf("%.0f of %d requests reached the API server", passed, n)
	}
	of.cpu = float64(after-before) / float64(n)
	r.report.Add(fmt.Sprintf("Request/mode=%s/proto=%s/form=%s", m.name, k.protocol, k.name), n,
		report.Value{Of: of.cpu, Unit: "cpu-ns/op"}, report.Value{Of: float64(of.size), Unit: "B/op"})
	if *profiles == "" || m.at == r.api {
		return of, nil
	}
	wait := m.at.profile(fmt.Sprintf("%s-%s-%s", m.name, k.protocol, k.name), 2*time.Second)
	if _, err := r.send(m, k, 2*n, func() error { return nil }); err != nil {
		return of, err
	}
	return of, wait()
}
