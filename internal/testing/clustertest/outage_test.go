// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A member is a test that observes kills. It implements the part of testing.TB that
// Outages uses.
type member struct {
	testing.TB
	cleanups []func()
}

func (m *member) Cleanup(f func()) { m.cleanups = append(m.cleanups, f) }

// outage ends the member's test with panic(m) after an error.
func (m *member) outage(o *Outages, away func()) {
	if o.Next(away) != nil {
		panic(m)
	}
}

// runs runs a member's test until it ends or fails.
func (m *member) runs(test func()) {
	defer func() {
		if failed := recover(); failed != nil && failed != m {
			panic(failed)
		}
		for _, f := range m.cleanups {
			f()
		}
	}()
	test()
}

// TestOutages: members that need one, two and three outages, and one that fails in
// the first, share three.
func TestOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var story []string
		tell := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			story = append(story, what)
		}
		act := func(what string) func() error {
			return func() error {
				time.Sleep(time.Second)
				tell(what)
				return nil
			}
		}
		o := newOutages(act("kill"), act("start"))
		var members [4]*member
		for i := range members {
			members[i] = &member{TB: t}
			o.Join(members[i])
		}
		var wg sync.WaitGroup
		for wanted, m := range members {
			wg.Go(func() {
				m.runs(func() {
					time.Sleep(time.Duration(wanted) * time.Minute)
					tell("ready")
					o.Ready()
					if wanted == 0 {
						m.outage(o, func() { panic(m) })
					}
					for range wanted {
						m.outage(o, func() { tell("away") })
					}
				})
			})
		}
		wg.Wait()
		want := []string{"ready", "ready", "ready", "ready", "kill", "away", "away", "away", "start", "kill", "away", "away", "start", "kill", "away", "start"}
		if !slices.Equal(story, want) {
			t.Errorf("%q, want %q", story, want)
		}
	})
}

// TestOutagesFail: the API server is restarted if the only member fails while it is
// down, and a kill that fails is an error of all members.
func TestOutagesFail(t *testing.T) {
	starts := 0
	o := newOutages(func() error { return nil }, func() error { starts++; return nil })
	m := &member{TB: t}
	o.Join(m)
	m.runs(func() {
		o.Ready()
		m.outage(o, func() { panic(m) })
	})
	if starts != 1 {
		t.Errorf("%d starts", starts)
	}

	o = newOutages(func() error { return errors.New("no such component") }, func() error { return nil })
	m = &member{TB: t}
	o.Join(m)
	m.runs(func() {
		o.Ready()
		m.outage(o, func() { t.Error("called without an outage") })
		t.Error("the member continues after a failed kill")
	})
}
