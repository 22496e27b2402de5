// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"io"
	"time"
)

// A Turn is the right to use a processor for a list, which is given up while a client is
// written to. A nil *Turn is that of a request without a user, and has no effect. It
// belongs to one goroutine.
type Turn struct {
	users *Users
	user  User
	slot  *Slot     // nil while it is given up
	since time.Time // when it got it
}

// Turn waits for a turn. It has to be ended. The error is the cause of the end of ctx.
func (u *Users) Turn(ctx context.Context) (*Turn, error) {
	user, ok := UserOf(ctx)
	if u == nil || !ok {
		return nil, nil
	}
	slot, err := u.turns.Acquire(ctx, user.Name)
	if err != nil {
		return nil, err
	}
	return &Turn{u, user, slot, time.Now()}, nil
}

// End gives the turn up.
func (t *Turn) End() {
	if t != nil && t.slot != nil {
		t.users.rest(t.slot, t.user, time.Since(t.since))
		t.slot = nil
	}
}

// resume waits for the turn again. Turns become free soon, since no client can hold one.
func (t *Turn) resume() {
	if t.slot == nil {
		t.slot, _ = t.users.turns.Acquire(context.Background(), t.user.Name) // does not fail: it waits without bounds
		t.since = time.Now()
	}
}

// Yield gives the turn up if it has been held for a while, and waits for the next one. It is for
// long work that writes little.
func (t *Turn) Yield() {
	if t != nil && (t.slot == nil || time.Since(t.since) >= longTurn) {
		t.End()
		t.resume()
	}
}

// Working returns a writer that has the turn in each write, for what takes processor time.
func (t *Turn) Working(w io.Writer) io.Writer {
	if t == nil {
		return w
	}
	return &workingWriter{w, t}
}

// Waiting returns a writer that gives the turn up before each write, for what a client can
// block.
func (t *Turn) Waiting(w io.Writer) io.Writer {
	if t == nil {
		return w
	}
	return &waitingWriter{w, t}
}

type workingWriter struct {
	w io.Writer
	t *Turn
}

func (w *workingWriter) Write(p []byte) (int, error) {
	w.t.resume()
	return w.w.Write(p)
}

type waitingWriter struct {
	w io.Writer
	t *Turn
}

func (w *waitingWriter) Write(p []byte) (int, error) {
	w.t.End()
	return w.w.Write(p)
}
