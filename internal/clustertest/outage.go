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
// known at the first kill, whichever tests -run selects.
type Outages struct {
	kill, start func() error

	mu      sync.Mutex // guards what follows
	members int        // tests that have joined and not ended
	waiting int        // members that wait for the next turn
	down    bool       // whether the API server is, or is about to be
	turn    *turn      // the next kill, or the next start
}

// A turn is one kill or one start.
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
	if o.waiting < o.members || o.waiting == 0 && !o.down {
		return nil
	}
	now, act := o.turn, o.kill
	if o.down {
		act = o.start
	}
	o.down, o.waiting, o.turn = !o.down, 0, &turn{done: make(chan struct{})}
	go func() {
		defer close(now.done)
		now.err = act()
	}()
	return now
}
