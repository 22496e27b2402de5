// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
)

// A shared is a question to the API server that many may have at the same time. It
// is asked once for all who wait, and is not the first one's to cancel.
type shared[T any] struct {
	begin   beginFunc
	timeout time.Duration // of a question
	flight  singleflight.Group
}

// start asks, unless what has the key is being asked already.
func (s *shared[T]) start(key string, ask func(context.Context) (T, error)) <-chan singleflight.Result {
	return s.flight.DoChan(key, func() (any, error) {
		ctx, end, ok := s.begin()
		if !ok {
			return nil, errDraining
		}
		defer end()
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		return ask(ctx)
	})
}

// get asks, and returns the answer, or an error when the context ends.
func (s *shared[T]) get(ctx context.Context, key string, ask func(context.Context) (T, error)) (T, error) {
	return s.wait(ctx, s.start(key, ask))
}

// wait waits for what was started.
func (s *shared[T]) wait(ctx context.Context, started <-chan singleflight.Result) (answer T, err error) {
	select {
	case res := <-started:
		answer, _ = res.Val.(T) // nil if it was not asked
		return answer, res.Err
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}
