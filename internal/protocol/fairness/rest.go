// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"time"
)

const (
	// A user is at work for so long after each list, call of the history, and read at the API server.
	atWork = time.Second
	// While others are at work, a user may use a processor for burst, and then for one of
	// shares parts of the time of all of them.
	burst, shares = time.Second, 10
	// shortRest is a rest that is not worth a timer, longTurn the time after which work that can
	// be interrupted is.
	shortRest, longTurn = 200 * time.Microsecond, 10 * time.Millisecond
	// refusalPause is the time between two answers 429 to a user. Up to maxRefused requests wait
	// for that, at most maxPause.
	refusalPause, maxPause, maxRefused = 20 * time.Millisecond, time.Second, 1000
)

// work is who is at work, and how long each user has used a processor. It is safe for
// concurrent use.
type work struct {
	mu   sync.Mutex  // guards the fields below
	last [2]struct { // the two users who were at work last, the newest first
		user string
		at   time.Time
	}
	used  map[string]usedTime
	swept time.Time // when those who rest no more were dropped from used
}

// usedTime is how long a user has used a processor, less what it may use since.
type usedTime struct {
	time time.Duration
	at   time.Time
}

func (u usedTime) left(now time.Time) time.Duration {
	return max(0, u.time-now.Sub(u.at)*processors()/shares)
}

func processors() time.Duration { return time.Duration(runtime.GOMAXPROCS(0)) }

// begin notes that a user is at work.
func (w *work) begin(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beginLocked(user, time.Now())
}

// beginLocked reports whether others are at work, too.
func (w *work) beginLocked(user string, now time.Time) (others bool) {
	if w.last[0].user != user {
		w.last[1] = w.last[0]
	}
	w.last[0].user, w.last[0].at = user, now
	return now.Sub(w.last[1].at) < atWork
}

// end notes that a user has used a processor for a time, and returns how long it rests.
func (w *work) end(user string, took time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	others := w.beginLocked(user, now)
	if now.Sub(w.swept) > atWork {
		maps.DeleteFunc(w.used, func(_ string, u usedTime) bool { return u.left(now) == 0 })
		w.swept = now
	}
	left := w.used[user].left(now)
	if !others { // what it uses while it is alone does not count
		left = min(left, burst)
	}
	used := left + min(took, burst) // the process may have been stopped for longer
	w.used[user] = usedTime{used, now}
	if !others {
		return 0
	}
	return max(0, used-burst) * shares / processors()
}

// rest frees a slot in which a user has used a processor for a time; for the user itself, after
// its rest. While one user keeps a processor busy, the others wait for those that are left, on
// which the API server and clients may run, too.
func (u *Users) rest(s *Slot, user User, took time.Duration) {
	if d := u.work.end(user.Name, took); d >= shortRest {
		s.Rest(d)
	} else {
		s.Release()
	}
}

// Pause waits before a user gets an answer 429, so that a client that asks again at once takes
// no time of others. Its caller has nothing for which others wait.
func (u *Users) Pause(ctx context.Context) {
	user, ok := UserOf(ctx)
	if u == nil || !ok {
		return
	}
	if slot, err := u.pauses.Acquire(ctx, user.Name); err == nil {
		slot.Rest(refusalPause)
	}
}
