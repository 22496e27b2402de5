// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
)

var (
	// ErrOtherCluster marks a directory that holds another cluster's history.
	ErrOtherCluster = errors.New("the directory holds the history of another cluster")
	// ErrNewerFormat marks a directory that a later version of the program wrote.
	ErrNewerFormat = errors.New("the history was written by a newer version")
	// ErrCorrupt marks a store whose content is not what was written to it.
	ErrCorrupt = errors.New("the history is damaged")
	// ErrClosed is what a closed store answers.
	ErrClosed = errors.New("the history is closed")
	// ErrDiskFull marks a write that was not tried: the disk is almost full.
	ErrDiskFull = errors.New("the disk is full")
	// ErrFailed marks a store that could not be written, and will not be before
	// [Store.Recover].
	ErrFailed = errors.New("the history could not be written")

	// ErrBefore marks a moment older than what is retained.
	ErrBefore = errors.New("before the recorded history")
	// ErrFuture marks a moment that has not come.
	ErrFuture = errors.New("after the recorded history")
	// ErrGap marks a moment at which nothing was observed.
	ErrGap = errors.New("in a gap of the recorded history")
)

// errReadOnly is what a store that was opened to be read answers to writes.
var errReadOnly = errors.New("the history is only read")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
