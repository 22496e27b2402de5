// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"sync"
	"testing"
)

// Outages lets parallel tests share the kills of the API server, or of all API servers
// if there are several: a restart costs several seconds of CPU, and each test only
// watches it. The API server is killed
// once every test that has joined and not ended waits for the kill. It is
// restarted once each of them has done its part of the outage.
//
// A test calls Join before the parallel tests begin, so the number of tests is
// known at the first kill, whichever tests -run selects. After long preparations it
// calls Ready, and then Next for each outage.
type Outages struct {
	kill, start func() error

	mu      sync.Mutex // guards what follows
	members int        // tests that have joined and not ended
	waiting int        // members that wait for the next turn
	phase   phase
	turn    *turn // the next
}

// A phase is the state of the API server while members wait.
//
//	gathering ── all are ready ──▶ up ── kill ──▶ down
//	                               ▲               │
//	                               └──── start ────┘
type phase int

const (
	gathering phase = iota
	up
	down
)

// A turn is the end of a phase: all are ready, or the API server was killed or
// started.
type turn struct {
	done chan struct{} // closed once it has happened
	err  error         // valid once done is closed
}

// Outages returns the shared kills of the cluster's API servers.
func (c *Cluster) Outages() *Outages {
	return newOutages(func() error { return c.SignalAPIServers("KILL") }, c.StartAPIServers)
}

func newOutages(kill, start func() error) *Outages {
	return &Outages{kill: kill, start: start, turn: &turn{done: make(chan struct{})}}
}

// Join adds a test, which has to call t.Parallel afterwards. The other tests do not
// wait for a test that has ended.
func (o *Outages) Join(t testing.TB) {
	o.mu.Lock()
	if o.members == 0 { // the first test, also with -count
		o.phase = gathering
	}
	o.members++
	o.mu.Unlock()
	t.Cleanup(func() {
		o.mu.Lock()
		o.members--
		started := o.advanceLocked()
		o.mu.Unlock()
		if started != nil {
			<-started.done
		}
	})
}

// Ready returns when all members are ready. A member that loads the machine begins
// its load only after that.
func (o *Outages) Ready() { _ = o.await() }

// Next returns when the API server was killed and is back. While it is down, Next
// calls away, unless it is nil.
func (o *Outages) Next(away func()) error {
	if err := o.await(); err != nil {
		return err
	}
	if away != nil {
		away()
	}
	return o.await()
}

// await waits for the next turn.
func (o *Outages) await() error {
	o.mu.Lock()
	o.waiting++
	mine := o.turn
	o.advanceLocked()
	o.mu.Unlock()
	<-mine.done
	return mine.err
}

// advanceLocked takes the next turn if all members wait for it, and returns it. If
// the last member ends during an outage, no member waits, but the API server is
// restarted for later tests.
func (o *Outages) advanceLocked() *turn {
	if o.waiting < o.members || o.waiting == 0 && o.phase != down {
		return nil
	}
	now := o.turn
	o.waiting, o.turn = 0, &turn{done: make(chan struct{})}
	act := func() error { return nil }
	switch o.phase {
	case gathering:
		o.phase = up
	case up:
		o.phase, act = down, o.kill
	case down:
		o.phase, act = up, o.start
	}
	go func() {
		defer close(now.done)
		now.err = act()
	}()
	return now
}
