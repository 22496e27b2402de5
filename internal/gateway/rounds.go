// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
	"time"
)

// A rounds shares the answers to a question whose answer changes with time. A
// caller gets the answer of a round that began after its call: those who come
// while one is on its way share the next one, since the one on its way may
// have begun too early for them. Nothing is asked while nobody calls.
type rounds[T any] struct {
	ask     func(context.Context) (T, error)
	begin   beginFunc
	timeout time.Duration // of a round
	// pause is for how long nothing is asked after a round that failed, and
	// failed what callers are told instead.
	pause  time.Duration
	failed error

	mu        sync.Mutex // guards what follows
	running   *round[T]
	next      *round[T]
	notBefore time.Time // when the pause ends
}

// A round is one question; answer and err are set when done is closed.
type round[T any] struct {
	done   chan struct{}
	answer T
	err    error
}

// get returns the answer of a round that began after the call, or an error.
func (s *rounds[T]) get(ctx context.Context) (answer T, err error) {
	s.mu.Lock()
	if time.Now().Before(s.notBefore) {
		s.mu.Unlock()
		return answer, s.failed
	}
	mine := s.next
	if mine == nil {
		mine = &round[T]{done: make(chan struct{})}
		if s.running != nil {
			s.next = mine
		} else {
			base, end, ok := s.begin()
			if !ok {
				s.mu.Unlock()
				return answer, errDraining
			}
			s.running = mine
			go func() {
				defer end()
				s.run(base, mine)
			}()
		}
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.answer, mine.err
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}

// paused reports whether nothing is asked for now.
func (s *rounds[T]) paused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.notBefore)
}

// run does rounds as long as somebody waits for one. Those who wait while a
// round fails are in the pause behind it.
func (s *rounds[T]) run(base context.Context, r *round[T]) {
	for r != nil {
		ctx, cancel := context.WithTimeout(base, s.timeout)
		r.answer, r.err = s.ask(ctx)
		cancel()
		close(r.done)
		failed := r.err != nil
		s.mu.Lock()
		r, s.next = s.next, nil
		if failed {
			s.notBefore = time.Now().Add(s.pause)
			if r != nil {
				r.err = s.failed
				close(r.done)
				r = nil
			}
		}
		s.running = r
		s.mu.Unlock()
	}
}
