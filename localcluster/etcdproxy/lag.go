// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package etcdproxy

import (
	"context"
	"math"
	"sync"
	"time"
)

// Hold is a delay that does not end.
const Hold time.Duration = math.MaxInt64

// Lag is a delay of watches. The zero value is none.
type Lag struct {
	Delay time.Duration
	// Until is when the lag ends; zero: when it is changed.
	Until time.Time
}

// lag is the current Lag.
type lag struct {
	mu      sync.Mutex // guards what follows
	current Lag
	changed chan struct{} // closed and replaced at a change of current
}

// SetLag changes the delay of watches, also of messages that have arrived.
func (p *Proxy) SetLag(l Lag) {
	p.lag.mu.Lock()
	defer p.lag.mu.Unlock()
	p.lag.current = l
	close(p.lag.changed)
	p.lag.changed = make(chan struct{})
}

// Lag returns the delay of watches.
func (p *Proxy) Lag() Lag {
	current, _ := p.lag.get()
	return current
}

func (l *lag) get() (Lag, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := l.current.Until; !until.IsZero() && !time.Now().Before(until) {
		return Lag{}, l.changed
	}
	return l.current, l.changed
}

// wait returns when a message that has arrived at a time is due, or with an error when
// ctx ends.
func (l *lag) wait(ctx context.Context, arrived time.Time) error {
	for {
		current, changed := l.get()
		due := arrived.Add(current.Delay)
		if until := current.Until; !until.IsZero() && until.Before(due) {
			due = until
		}
		remaining := time.Until(due)
		if remaining <= 0 {
			return nil
		}
		timer := time.NewTimer(remaining)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
