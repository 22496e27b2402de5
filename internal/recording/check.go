// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"io"
)

// A Summary describes the content of a recording.
type Summary struct {
	Header
	Resources int
	Objects   int // in the first state
	Changes   int
	Gaps      int
}

// Check reads a whole recording, and fails as [Import] does.
func Check(ctx context.Context, r io.Reader) (*Summary, error) {
	d, h, err := newDecoder(ctx, r, 0, defaultLimits.kept)
	if err != nil {
		return nil, err
	}
	defer d.close()
	s := &Summary{Header: *h}
	for {
		l, err := d.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case l.Stream != nil:
			s.Resources++
		case l.Object != nil:
			s.Objects++
		case l.Event != nil:
			s.Changes++
		case l.Gap != nil:
			s.Gaps++
		}
	}
}
