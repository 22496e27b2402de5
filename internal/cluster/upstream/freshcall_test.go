// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var errPaused = errors.New("paused")

func newFreshCall(t *testing.T, ask func(context.Context) (int, error)) *FreshCall[int] {
	b := NewBackground()
	t.Cleanup(b.Stop)
	return &FreshCall[int]{Ask: ask, Background: b, Timeout: time.Minute, Pause: 5 * time.Second, ErrPaused: errPaused}
}

// TestFreshCallIsShared: callers that arrive while a call runs share the next one, since
// the first began too early for them.
func TestFreshCallIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := newFreshCall(t, func(context.Context) (int, error) {
			asked++
			n := asked
			time.Sleep(time.Second)
			return n, nil
		})
		got := make(chan int, 10)
		ask := func() {
			n, err := s.Do(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- n
		}
		go ask()
		time.Sleep(time.Millisecond)
		for range 5 {
			go ask()
			time.Sleep(time.Millisecond)
		}
		var answers []int
		for range 6 {
			answers = append(answers, <-got)
		}
		if !slices.Equal(answers, []int{1, 2, 2, 2, 2, 2}) || asked != 2 {
			t.Errorf("answers %v, %d calls", answers, asked)
		}
		time.Sleep(time.Hour)
		if asked != 2 {
			t.Error("a call without a caller")
		}
		if ask(); asked != 3 || <-got != 3 {
			t.Error("an old answer")
		}
	})
}

// TestFreshCallPauses: after a failed call there is a pause, also for callers that were
// waiting.
func TestFreshCallPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		asked := 0
		s := newFreshCall(t, func(context.Context) (int, error) {
			asked++
			time.Sleep(time.Second)
			return 0, broken
		})
		waiting := make(chan error)
		go func() {
			time.Sleep(time.Millisecond)
			_, err := s.Do(t.Context())
			waiting <- err
		}()
		if _, err := s.Do(t.Context()); !errors.Is(err, broken) {
			t.Errorf("the first: %v", err)
		}
		if err := <-waiting; !errors.Is(err, errPaused) {
			t.Errorf("one that waited: %v", err)
		}
		time.Sleep(4 * time.Second)
		if _, err := s.Do(t.Context()); !errors.Is(err, errPaused) || asked != 1 {
			t.Errorf("in the pause: %v, asked %d times", err, asked)
		}
		time.Sleep(2 * time.Second)
		if _, err := s.Do(t.Context()); !errors.Is(err, broken) || asked != 2 {
			t.Errorf("after the pause: %v, asked %d times", err, asked)
		}
	})
}

// TestFreshCallCallerLeaves: a caller that leaves does not end the call.
func TestFreshCallCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFreshCall(t, func(ctx context.Context) (int, error) {
			select {
			case <-time.After(time.Second):
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		left := make(chan error)
		go func() {
			_, err := s.Do(ctx)
			left <- err
		}()
		if err := <-left; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller that left: %v", err)
		}
		if n, err := s.Do(t.Context()); n != 7 || err != nil {
			t.Errorf("the next caller: %d, %v", n, err)
		}
	})
}
