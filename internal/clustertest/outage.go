// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"sync"
	"testing"
)

// Outages lets tests that run in parallel share the kills of the API server: a
// restart costs several seconds of CPU, and each test only watches it. The API
// server is killed when every test that has joined and has not ended waits for
// the kill. It comes back when each of them has done its part of the outage.
//
// A test calls Join before the parallel tests begin, so the number of tests is
// known at the first kill, whichever tests -run selects. When it has prepared
// what takes long, it calls Ready, and then Next for each outage.
type Outages struct {
	kill, start func() error

	mu      sync.Mutex // guards what follows
	members int        // tests that have joined and not ended
	waiting int        // members that wait for the next turn
	phase   phase
	turn    *turn // the next
}

// A phase is what the members wait to end.
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

// A turn is the moment when all are ready, or one kill, or one start.
type turn struct {
	done chan struct{} // closed when it has happened,
	err  error         // so
}

// Outages returns the shared kills of the cluster's API server.
func (c *Cluster) Outages() *Outages {
	const component = "kube-apiserver"
	return newOutages(
		func() error { return c.Signal(component, "KILL") },
		func() error { return c.StartComponent(component) },
	)
}

func newOutages(kill, start func() error) *Outages {
	return &Outages{kill: kill, start: start, turn: &turn{done: make(chan struct{})}}
}

// Join adds a test, which has to call t.Parallel itself, afterwards. The other
// tests do not wait for a test that has ended.
func (o *Outages) Join(t testing.TB) {
	o.mu.Lock()
	if o.members == 0 { // the first, also of another run of the tests
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

// Ready returns when all members are ready. A member that burdens the machine,
// with a load or with reads, begins with that only then.
func (o *Outages) Ready() { _ = o.await() }

// Next returns when the API server was killed and has come back. While it is
// away, it calls away, if that is not nil.
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

// advanceLocked takes the next turn if all members wait for it, and returns it.
// When the last member ends during an outage, nobody waits, but the API server
// comes back for the tests that follow.
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
