// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// An Inflight shares the answer to a question to the API server between all who
// ask it at the same time. The question is asked once, and goes on when the first
// caller gives up.
type Inflight[T any] struct {
	background *Background
	timeout    time.Duration // of a question
	flight     singleflight.Group
}

// NewInflight returns an Inflight whose questions take at most the timeout.
func NewInflight[T any](b *Background, timeout time.Duration) *Inflight[T] {
	return &Inflight[T]{background: b, timeout: timeout}
}

// Start asks, unless the question with the key is being asked already.
func (f *Inflight[T]) Start(key string, ask func(context.Context) (T, error)) <-chan singleflight.Result {
	return f.flight.DoChan(key, func() (any, error) {
		ctx, end, ok := f.background.Begin()
		if !ok {
			return nil, ErrShutdown
		}
		defer end()
		ctx, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		return ask(ctx)
	})
}

// Do asks and waits for the answer, or until ctx ends.
func (f *Inflight[T]) Do(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	return f.Wait(ctx, f.Start(key, ask))
}

// Wait waits for what Start returned.
func (f *Inflight[T]) Wait(ctx context.Context, started <-chan singleflight.Result) (answer T, err error) {
	select {
	case res := <-started:
		answer, _ = res.Val.(T) // nil if it was not asked
		return answer, res.Err
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}
