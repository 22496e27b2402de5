// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"sync"
	"time"
)

// A FreshCall shares the answers of a call whose answer changes with time. A caller
// gets the answer of a call that began after Do: callers that arrive while a call runs
// share the next one, since the running call began too early for them. No call is made
// without a waiting caller.
type FreshCall[T any] struct {
	// Ask makes the call.
	Ask func(context.Context) (T, error)
	// Background runs the calls.
	Background *Background
	// Timeout bounds a call.
	Timeout time.Duration
	// Pause is how long no call is made after one that failed; callers get ErrPaused
	// meanwhile.
	Pause     time.Duration
	ErrPaused error

	mu        sync.Mutex // guards the fields below
	running   *call[T]
	next      *call[T]
	notBefore time.Time // when the pause ends
}

// A call is one call of Ask; answer and err are set when done is closed.
type call[T any] struct {
	done   chan struct{}
	answer T
	err    error
}

// Do returns the answer of a call that began after Do did.
func (f *FreshCall[T]) Do(ctx context.Context) (answer T, err error) {
	f.mu.Lock()
	if time.Now().Before(f.notBefore) {
		f.mu.Unlock()
		return answer, f.ErrPaused
	}
	mine := f.next
	if mine == nil {
		mine = &call[T]{done: make(chan struct{})}
		if f.running != nil {
			f.next = mine
		} else {
			base, end, ok := f.Background.Begin()
			if !ok {
				f.mu.Unlock()
				return answer, ErrShutdown
			}
			f.running = mine
			go func() {
				defer end()
				f.run(base, mine)
			}()
		}
	}
	f.mu.Unlock()
	select {
	case <-mine.done:
		return mine.answer, mine.err
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}

// run makes calls while callers wait for one. Callers that wait for the next call when
// one fails get ErrPaused.
func (f *FreshCall[T]) run(base context.Context, c *call[T]) {
	for c != nil {
		ctx, cancel := context.WithTimeout(base, f.Timeout)
		c.answer, c.err = f.Ask(ctx)
		cancel()
		close(c.done)
		failed := c.err != nil
		f.mu.Lock()
		c, f.next = f.next, nil
		if failed {
			f.notBefore = time.Now().Add(f.Pause)
			if c != nil {
				c.err = f.ErrPaused
				close(c.done)
				c = nil
			}
		}
		f.running = c
		f.mu.Unlock()
	}
}
