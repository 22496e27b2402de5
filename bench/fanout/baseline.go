// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/barewrites"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// bareWrites is a process that writes as many bytes to as many watches as a server that
// delivers the events of the ConfigMaps, at the same moments, and does nothing else.
type bareWrites struct {
	*barewrites.Process
	r         *harness
	direct    *endpoint
	endpoints []*endpoint // over HTTP/2 with TLS, and over HTTP/1.1
}

// bare starts the process. The caller calls stop.
func (r *harness) bare(direct *endpoint) (*bareWrites, error) {
	size, err := r.eventSize(direct, fmt.Sprintf("/api/v1/namespaces/%s/configmaps/config-0", namespace))
	if err != nil {
		return nil, err
	}
	p, endpoints, err := startBare(size)
	if err != nil {
		return nil, err
	}
	return &bareWrites{Process: p, r: r, direct: direct, endpoints: endpoints}, nil
}

// startBare starts a process that only writes events of a size. Its endpoints are over
// HTTP/2 with TLS, and over HTTP/1.1.
func startBare(size int) (*barewrites.Process, []*endpoint, error) {
	p, err := barewrites.StartSelf("-baseline", strconv.Itoa(size))
	if err != nil {
		return nil, nil, err
	}
	var endpoints []*endpoint
	for _, t := range []streams.Target{p.HTTP2, p.HTTP1} {
		endpoints = append(endpoints, &endpoint{name: "baseline", pid: p.PID, target: t})
	}
	return p, endpoints, nil
}

func (b *bareWrites) stop() { b.Stop() }

// eventSize returns the size of an event of an object.
func (r *harness) eventSize(e *endpoint, path string) (int, error) {
	c, err := streams.Dial(r.ctx, e.target)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	// The object's line ends with a newline, as the event's does.
	object, err := c.Get(path, nil)
	return len(`{"type":"MODIFIED","object":}`) + int(object.Bytes), err
}

// watched is [harness.watched] at the process: each event that a direct watch receives
// makes it write one.
func (b *bareWrites) watched(e *endpoint, n, updates int, rate float64) (time.Duration, error) {
	var lost atomic.Pointer[error]
	of, err := streams.Open(b.r.ctx, b.direct.target, streams.Options{
		Paths: same(1, configMaps+fromNow),
		Observe: func(int, uint64, time.Time) {
			if err := b.Events(1); err != nil {
				lost.Store(&err)
			}
		},
	})
	if err != nil {
		return 0, err
	}
	defer of.Close()
	used, err := b.r.watched([]*endpoint{e}, e, n, updates, rate)
	if lost := lost.Load(); lost != nil {
		return 0, *lost
	}
	if err != nil {
		return 0, err
	}
	return used[0], nil
}
