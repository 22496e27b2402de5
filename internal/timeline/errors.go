// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import "errors"

var (
	// ErrCompacted is returned for an RV below the window or inside a gap.
	ErrCompacted = errors.New("resourceVersion is compacted")

	// ErrFutureRV is returned for the state at an RV above the head.
	ErrFutureRV = errors.New("resourceVersion is in the future")

	// ErrNotReady is returned before the first list.
	ErrNotReady = errors.New("timeline is not ready")

	// ErrClosed is returned after Close, when no more events can come.
	ErrClosed = errors.New("timeline is closed")

	// ErrOutOfOrder is returned by Apply for an event below the head: the
	// upstream's RVs went backwards. Nothing was applied.
	ErrOutOfOrder = errors.New("event is out of order")
)
