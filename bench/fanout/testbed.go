// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"

	"github.com/watchkeeper/watchkeeper/bench/lib/loadgen"
	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

// A testbed is a fake API server in its own process, and a gateway in front of it.
type testbed struct {
	url     string
	target  streams.Target // of the fake API server itself
	gateway *endpoint
	stop    func()
}

// load starts a fake API server with a number of Pods, and a gateway with additional flags.
func (r *harness) load(pods int, p streams.Protocol, flags ...string) (g *testbed, err error) {
	if r.none == nil {
		if r.none, err = clustertest.Without(); err != nil {
			return nil, err
		}
	}
	addresses, end, err := fakeprocess.StartSelf("-fakeapi", strconv.Itoa(pods))
	if err != nil {
		return nil, err
	}
	url := addresses["http"].URL
	e, stop, err := r.gateway(r.none, p, append(flags, "--server", url)...)
	if err != nil {
		end()
		return nil, err
	}
	return &testbed{
		url: url, gateway: e,
		target: streams.Target{Address: strings.TrimPrefix(url, "http://"), Protocol: streams.HTTP1},
		stop: func() {
			stop()
			end()
		},
	}, nil
}

// loaded is load, and waits until the gateway has listed the Pods.
func (r *harness) loaded(n int, p streams.Protocol) (*testbed, error) {
	g, err := r.load(n, p)
	if err != nil {
		return nil, err
	}
	if err := g.gateway.warm(r.ctx, pods); err != nil {
		g.stop()
		return nil, err
	}
	return g, nil
}

// generate makes the fake API server change n Pods, rate per second, or all at once if
// the rate is 0. It returns after the last change.
func (r *harness) generate(g *testbed, n int, rate float64) error {
	_, err := loadgen.Generate(r.ctx, g.url, n, rate)
	return err
}

// taken returns the number of events that the gateway has received.
func (g *testbed) taken() (float64, error) {
	v, err := process.Metrics(g.gateway.debug, g.gateway.debugURL, "watchkeeper_resource_events_total")
	if err != nil {
		return 0, err
	}
	return v[0], nil
}
