// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

var (
	// ErrOtherCluster: the directory holds another cluster's history.
	ErrOtherCluster = errors.New("the directory holds the history of another cluster")
	// ErrNewerFormat: a later version of the program wrote the directory.
	ErrNewerFormat = errors.New("the history was written by a newer version of watchkeeper")
	// ErrCorrupt: the content is not what was written.
	ErrCorrupt = errors.New("the history is damaged")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("the history is closed")
	// ErrDiskFull: a write was not attempted because the disk is almost full.
	ErrDiskFull = errors.New("the disk is almost full")
	// ErrFailed: a write failed, and nothing is written before [Store.Recover].
	ErrFailed = errors.New("the history could not be written")

	// ErrBefore: the RV or time is older than what is retained.
	ErrBefore = errors.New("before the recorded history")
	// ErrFuture: the RV or time is after the head.
	ErrFuture = errors.New("after the recorded history")
	// ErrGap: nothing was observed at that RV or time.
	ErrGap = errors.New("in a gap of the recorded history")
	// ErrClock: the clock was set back, so the time is that of more than one state.
	ErrClock = errors.New("ambiguous in the recorded history")
	// ErrTooMany: there are more events between two states than a caller wants to be read.
	ErrTooMany = errors.New("too many changes")
)

// A RangeError is an error about a moment at which the state is not known, with the moments
// at which it is.
type RangeError struct {
	// Err wraps ErrBefore, ErrFuture, ErrGap, or an error of a caller.
	Err error
	// Resource is the zero Resource if the error is about all.
	Resource kube.Resource
	// RV is the resourceVersion of the moment; 0 for a time.
	RV uint64
	// From and To are the ends of the gap of an ErrGap, else those of the record. They are
	// zero if nothing is recorded.
	From, To Moment
	// Why is why nothing is recorded after To, nil if that is not known.
	Why error
}

func (e *RangeError) Error() string { return e.Err.Error() }

func (e *RangeError) Unwrap() error { return e.Err }

// errReadOnly: a write to a store opened with Options.ReadOnly.
var errReadOnly = errors.New("the history was opened read-only")

// Misuse by a writer.
var (
	errBegun    = errors.New("history: Begin was called twice")
	errNotBegun = errors.New("history: Begin was not called")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// damage marks Pebble's corruption errors, which errors.Is cannot recognize.
func damage(err error) error {
	if pebble.IsCorruptionError(err) && !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// corruptBase is the error for a delta whose base is missing.
func corruptBase(key kube.Key, rv, base uint64) error {
	return corrupt("%s at %d: the version at %d, which its delta applies to, is missing", key, rv, base)
}
