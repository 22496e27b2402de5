// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
)

// Compact rewrites everything into as little room as it takes. What goes on in
// the background does the same, later; this is for measuring, and for a store
// that is to be kept or copied.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.use(); err != nil {
		return err
	}
	defer s.done()
	if err := s.db.Flush(); err != nil {
		return err
	}
	return errors.Join(s.db.Compact(ctx, []byte{0}, []byte{255}, true), ctx.Err())
}
