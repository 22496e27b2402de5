// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// An endpoint is a measured server.
type endpoint struct {
	name     string // direct or gateway
	pid      int
	target   streams.Target
	debug    *http.Client // for /metrics and /debug/pprof at debugURL
	debugURL string
}

// via returns the part of a benchmark's name for the endpoint.
func (e *endpoint) via() string { return fmt.Sprintf("via=%s/proto=%s", e.name, e.target.Protocol) }

func (e *endpoint) cpu() (time.Duration, error) { return process.CPU(e.pid) }

func (e *endpoint) memory() (process.Memory, error) {
	return process.MemoryOf(e.pid, e.debug, e.debugURL)
}

// fromNow is the query of a watch that begins now, from the cache.
const fromNow = "?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

// same returns a path n times.
func same(n int, path string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = path
	}
	return all
}

// warm waits until the endpoint serves a collection from its cache.
func (e *endpoint) warm(ctx context.Context, path string) error {
	c, err := streams.Dial(ctx, e.target)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Get(path+"?resourceVersion=0", nil); err != nil || e.name == "direct" {
		return err
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		synced, err := process.Metrics(e.debug, e.debugURL, "watchkeeper_resource_synced")
		if err == nil && synced[0] > 0 {
			return nil
		}
		if time.Since(start) > time.Minute {
			return fmt.Errorf("the gateway has not synced %s: %v", path, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// profile starts to profile the gateway for about a duration, if -profiles is set. wait
// returns when the profile is saved as name.pprof.
func (e *endpoint) profile(name string, d time.Duration) (wait func() error) {
	if *profiles == "" || e.name != "gateway" {
		return func() error { return nil }
	}
	return process.Profile(e.debug, e.debugURL, *profiles, name, d)
}

// clock measures the CPU time of servers.
type clock struct {
	servers []*endpoint
	before  []time.Duration
}

func startClock(servers ...*endpoint) (*clock, error) {
	c := &clock{servers: servers}
	before, err := c.now()
	c.before = before
	return c, err
}

func (c *clock) now() ([]time.Duration, error) {
	all := make([]time.Duration, len(c.servers))
	for i, e := range c.servers {
		var err error
		if all[i], err = e.cpu(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// since returns the CPU time of each server since the start of the clock.
func (c *clock) since() ([]time.Duration, error) {
	now, err := c.now()
	if err != nil {
		return nil, err
	}
	for i := range now {
		now[i] -= c.before[i]
	}
	return now, nil
}
