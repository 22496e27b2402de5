// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// An Inflight shares one request to the API server among concurrent callers. The
// request continues when its first caller leaves.
type Inflight[T any] struct {
	background *Background
	timeout    time.Duration // of a request
	flight     singleflight.Group
}

// NewInflight returns an Inflight whose requests take at most the timeout.
func NewInflight[T any](b *Background, timeout time.Duration) *Inflight[T] {
	return &Inflight[T]{background: b, timeout: timeout}
}

// Start calls ask, unless a call with the key is running already.
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

// Do is Start and Wait.
func (f *Inflight[T]) Do(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	return f.Wait(ctx, f.Start(key, ask))
}

// Wait waits for the answer of a call that Start returned, or until ctx ends.
func (f *Inflight[T]) Wait(ctx context.Context, started <-chan singleflight.Result) (answer T, err error) {
	select {
	case res := <-started:
		answer, _ = res.Val.(T) // nil if ask was not called
		return answer, res.Err
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}
