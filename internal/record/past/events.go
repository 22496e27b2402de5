// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// maxPrintedSpan bounds the time between the first and the last event whose rows are
// printed as of the same time.
const maxPrintedSpan = time.Second

// read returns the next batch of events from the history. It does not split the
// events of one RV (T5).
func (s *Source) read() (b timeline.Batch, err error) {
	size := 0
	for {
		e, err := s.peek()
		if errors.Is(err, history.ErrBefore) || errors.Is(err, history.ErrGap) {
			return b, status.ExpiredError(err.Error()) // retention has passed the position
		}
		if err != nil || e == nil {
			return b, err
		}
		if rv := e.Object.RV; rv > s.rv {
			switch {
			case s.clock != nil && e.At.After(s.clock.now()):
				s.sleep(s.clock.until(e.At))
				return b, nil
			case size >= batchBytes, s.printed && size > 0 && e.At.Sub(s.at) >= maxPrintedSpan:
				b.More = true
				return b, nil
			}
		}
		if size == 0 {
			s.at = e.At
		}
		size += len(e.Object.JSON)
		s.reader.skip()
		s.rv = e.Object.RV
		if event := s.event(e); event != nil {
			b.Events = append(b.Events, event)
		}
	}
}

// event converts a recorded event to an event of a timeline. It returns nil if the
// event does not match the watcher's interest.
func (s *Source) event(e *history.Event) *timeline.Event {
	event := &timeline.Event{Type: e.Type, RV: e.Object.RV, Object: e.Object, Prev: e.Prev, Inferred: e.Inferred, At: e.At}
	if s.printed {
		event.Object, event.Prev = s.aligned(e.Object), s.aligned(e.Prev)
	}
	if _, _, ok := s.in.Seen(event); !ok {
		return nil
	}
	return event
}

// aligned returns a copy of an object, which may be nil, with its Table row in the
// columns of the watch.
func (s *Source) aligned(o *scan.Object) *scan.Object {
	if o == nil {
		return nil
	}
	one := []*scan.Object{o}
	s.Align(one)
	return one[0]
}

// Align rewrites the Table rows of objects to the columns of the first objects that
// it was called with: a watch has the same columns from its beginning to its end.
func (s *Source) Align(items []*scan.Object) {
	if s.columns == "" {
		s.columns = wire.NewestColumns(items, "")
	}
	wire.AlignRows(items, s.columns)
}

// peek returns the next recorded event, nil if there is none.
func (s *Source) peek() (*history.Event, error) {
	for {
		if s.reader == nil {
			to := s.stream.Head().RV
			if s.ahead && to >= s.rv {
				if err := s.stream.Check(s.rv); err != nil {
					return nil, err
				}
				s.ahead = false
			}
			if to <= s.rv {
				return nil, nil
			}
			s.reader = newEventReader(s.stream, s.rv, to)
		}
		e, ok, err := s.reader.peek()
		if e != nil || err != nil {
			return e, err
		}
		if ok { // the end
			s.rv = max(s.rv, s.reader.to)
		}
		s.reader.close()
		s.reader = nil
	}
}

// move moves the position of a replay to the RV that was the head at a time, but not
// past the next event.
func (s *Source) move(to time.Time) {
	m, err := s.stream.At(context.Background(), to) // see newEventReader
	if err != nil || m.RV <= s.rv {
		return
	}
	if e, err := s.peek(); err == nil && e != nil {
		m.RV = min(m.RV, e.Object.RV-1)
	}
	s.rv = max(s.rv, m.RV)
}
