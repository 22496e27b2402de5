// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import "errors"

var (
	// ErrCompacted is returned for an RV that the timeline no longer holds,
	// or never did: below the window, or inside a gap.
	ErrCompacted = errors.New("resourceVersion is compacted")

	// ErrFutureRV is returned for the state at an RV above the head.
	ErrFutureRV = errors.New("resourceVersion is in the future")

	// ErrNotReady is returned while there is no first list.
	ErrNotReady = errors.New("timeline is not ready")

	// ErrClosed is returned once the timeline has ended: nobody writes it any
	// more.
	ErrClosed = errors.New("timeline is closed")

	// ErrOutOfOrder is returned by Apply for an event below the head: the
	// upstream went back in time. Nothing was applied.
	ErrOutOfOrder = errors.New("event is out of order")
)
