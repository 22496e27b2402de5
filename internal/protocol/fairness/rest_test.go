// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRest: a user who always has work uses a processor all the time while nobody else is at work,
// and calls of the history two; next to others, for the burst and its share. When they have left,
// it need not make up for it.
func TestRest(t *testing.T) {
	turn := func(ctx context.Context, u *Users, piece time.Duration) error {
		turn, err := u.Turn(ctx)
		if err == nil {
			time.Sleep(piece)
			turn.End()
		}
		return err
	}
	t.Run("turns on two processors", func(t *testing.T) { testRest(t, 2, 1, turn) })
	t.Run("turns on eight", func(t *testing.T) { testRest(t, 8, 3, turn) })
	t.Run("calls", func(t *testing.T) {
		testRest(t, 2, 2, func(ctx context.Context, u *Users, piece time.Duration) error {
			answered, end, err := u.Call(ctx)
			if err == nil {
				time.Sleep(piece)
				answered()
				end()
			}
			return err
		})
	})
}

// testRest tests work of which a user, alone, does so many pieces at a time.
func testRest(t *testing.T, processors int, atATime time.Duration, work func(context.Context, *Users, time.Duration) error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	synctest.Test(t, func(t *testing.T) {
		u := NewUsers(Limits{}, slog.New(slog.DiscardHandler))
		var mu sync.Mutex
		var used time.Duration
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		const piece = 5 * time.Millisecond
		for range 3 { // they share what the user has
			go func() {
				for ctx.Err() == nil {
					if work(WithUser(ctx, UserNamed("busy")), u, piece) != nil {
						return
					}
					mu.Lock()
					used += piece
					mu.Unlock()
				}
			}()
		}
		// during returns how long a processor was used in a span, in which others list or not.
		during := func(span time.Duration, others bool) time.Duration {
			mu.Lock()
			before := used
			mu.Unlock()
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(atWork / 2) {
				if others {
					done, err := u.List(as(t, "other"))
					if err != nil {
						t.Fatal(err)
					}
					done()
				}
			}
			mu.Lock()
			defer mu.Unlock()
			return used - before
		}
		const span = 20 * time.Second
		share := span * time.Duration(processors) / shares
		for _, c := range []struct {
			others   bool
			from, to time.Duration
		}{
			{false, atATime * (span - 2*piece), atATime * (span + 2*piece)},
			{true, share - 2*piece, share + burst},
			{false, atATime * (span - 2*atWork), atATime * span},
		} {
			if got := during(span, c.others); got < c.from || got > c.to {
				t.Errorf("others at work: %t: %v of %v, want %v to %v", c.others, got, span, c.from, c.to)
			}
		}
		u.work.begin("other")
		if got := u.work.end("busy", time.Hour); got > (burst+2*piece)*shares/2 {
			t.Errorf("after an hour in which the process was stopped, the rest is %v", got)
		}
		stop()
		synctest.Wait()
		time.Sleep(time.Minute)
		u.work.end("another", 0)
		if u.turns.Keys() != 0 || len(u.work.used) > 1 {
			t.Errorf("left: %d turns, %v", u.turns.Keys(), u.work.used)
		}
	})
}

// TestSlowReader: the time in which a client reads an answer of the history is no use of a processor.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUsers(Limits{}, slog.New(slog.DiscardHandler))
		for range 2 * DefaultPast {
			answered, end, err := u.Call(as(t, "slow"))
			if err != nil {
				t.Fatal(err)
			}
			answered()
			time.Sleep(time.Minute)
			u.work.begin("other")
			end()
		}
		if left := u.work.used["slow"].left(time.Now()); left > 0 {
			t.Errorf("it has used a processor for %v", left)
		}
	})
}

// TestYield: long work gives others a turn.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUsers(Limits{}, slog.New(slog.DiscardHandler))
		u.turns = NewQueue(QueueOptions{Slots: 1, Wait: -1})
		turn, err := u.Turn(as(t, "jane"))
		if err != nil {
			t.Fatal(err)
		}
		defer turn.End()
		had := false
		go func() {
			other, err := u.Turn(as(t, "john"))
			had = err == nil
			other.End()
		}()
		synctest.Wait()
		if turn.Yield(); had {
			t.Error("a turn that has just begun is given up")
		}
		time.Sleep(longTurn)
		if turn.Yield(); !had {
			t.Error("a long turn is not given up")
		}
		if turn.slot == nil {
			t.Error("the turn is not taken again")
		}
	})
}

// TestPause: the answers 429 to one user come one after the other, however many clients it has, and
// do not delay those to others. None waits longer than a second.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUsers(Limits{}, slog.New(slog.DiscardHandler))
		for _, clients := range []int{1, 30, 2 * int(maxPause/refusalPause)} {
			begin := time.Now()
			var running sync.WaitGroup
			for range clients {
				running.Go(func() {
					start := time.Now()
					u.Pause(as(t, "greedy"))
					if took := time.Since(start); took > maxPause {
						t.Errorf("%d clients: one waited for %v", clients, took)
					}
				})
			}
			synctest.Wait()
			if u.Pause(as(t, "modest")); time.Since(begin) != 0 {
				t.Errorf("another user waited for %v", time.Since(begin))
			}
			running.Wait()
			if took, want := time.Since(begin), min(maxPause, time.Duration(clients-1)*refusalPause); took != want {
				t.Errorf("%d clients were answered within %v, want %v", clients, took, want)
			}
			time.Sleep(refusalPause)
			synctest.Wait()
		}
		if u.pauses.Keys() != 0 {
			t.Error("a pause is left")
		}
	})
}
