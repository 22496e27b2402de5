// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
)

var (
	// ErrRunning is returned by [Informer.Run] and [Informer.Start] if the informer is
	// running.
	ErrRunning = errors.New("informer is already running")
	// ErrNotSynced is wrapped by every error that [Informer.WaitSynced]
	// returns.
	ErrNotSynced = errors.New("not synced")
	// ErrStopped is wrapped by the errors of waits, and yielded by [Informer.Events], if
	// the informer has stopped running.
	ErrStopped = errors.New("informer has stopped")
	// ErrNotWatched is wrapped by the errors of waits for a namespace that the informer
	// does not watch.
	ErrNotWatched = errors.New("not watched")
	// ErrNoObject is returned when an object of an event is read that has none, as
	// [Event].Old of an Added.
	ErrNoObject = errors.New("no object")
	// ErrAllNamespaces is returned by [Informer.AddNamespace] and
	// [Informer.RemoveNamespace] if the informer watches all namespaces.
	ErrAllNamespaces = errors.New("informer watches all namespaces")
)

// A PanicError is a panic of a function of [Reconcile], or of package reconcile.
type PanicError struct {
	Value any    // of the panic
	Stack []byte // of the goroutine, as text
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// A RefusedError reports that the API server does not let the collection be listed or
// watched: its Code is 401, 403, 404 or 405; or 501 if the answer to a list has no
// resourceVersion that a watch could start from. It wraps a [*StatusError].
type RefusedError = reflector.RefusedError

// A StatusError is an API server's answer to a list or a watch other than 200, or the
// Status of an ERROR event, with its Code, such as 400 or 406, its Message, and how long
// the API server asks to wait. It is wrapped by the errors of an informer.
type StatusError = reflector.StatusError

func isRefusal(err error) bool {
	_, ok := errors.AsType[*RefusedError](err)
	return ok
}
