// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"errors"

	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// TryNext is Next while the source is in the timeline, which never blocks. ok is false if
// the source is in the history, or has to fall back to it: then only Next continues.
func (s *Source) TryNext() (b timeline.Batch, ok bool, err error) {
	if s.cursor == nil {
		return b, false, nil
	}
	b, err = s.cursor.Next()
	return b, !errors.Is(err, timeline.ErrCompacted), err
}

// Await makes w be woken when TryNext may have more, as timeline.Cursor's.
func (s *Source) Await(w timeline.Waker) bool { return s.cursor != nil && s.cursor.Await(w) }
