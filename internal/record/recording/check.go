// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/spans"
)

// A Summary describes the content of a recording.
type Summary struct {
	Header
	Resources int
	Objects   int // in the first state
	Changes   int
	Gaps      int // those of several resources that overlap are one
	// Spans has the span of each resource, in the order of the file.
	Spans []Span
}

// A Span is the time for which a recording has a resource.
type Span struct {
	Resource kube.Resource
	From, To time.Time
}

// Check reads a whole recording, and fails as [Import] does.
func Check(ctx context.Context, r io.Reader) (*Summary, error) {
	d, h, err := newDecoder(ctx, r, 0, defaultLimits.kept)
	if err != nil {
		return nil, err
	}
	defer d.close()
	s := &Summary{Header: *h}
	var gaps []gapLine
	for {
		l, err := d.next()
		if errors.Is(err, io.EOF) {
			s.Gaps = len(spans.Join(gaps, func(g gapLine) (from, to time.Time) { return g.From.At, g.To.At })) // an outage is a gap of each resource
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case l.Stream != nil:
			if n := len(s.Spans); n > 0 && s.Spans[n-1].Resource.GroupResource() == l.Stream.resource().GroupResource() {
				continue // another epoch
			}
			s.Resources++
			s.Spans = append(s.Spans, Span{Resource: l.Stream.resource(), From: l.Stream.At})
		case l.Head != nil && len(s.Spans) > 0:
			s.Spans[len(s.Spans)-1].To = l.Head.At
		case l.Object != nil:
			s.Objects++
		case l.Event != nil:
			s.Changes++
		case l.Gap != nil:
			gaps = append(gaps, *l.Gap)
		}
	}
}
