// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// An Event is one change of one object.
type Event struct {
	Type kube.EventType // Added, Modified or Deleted
	// Object is the state after the change, at the event's RV; for a deletion,
	// the last state with the RV of the deletion.
	Object *scan.Object
	// Prev is the version before it, nil for an Added (T3). A writer that does
	// not have it may leave it nil: then the store reads it from disk.
	Prev *scan.Object
	// Inferred is set if the change was found by comparing two lists.
	Inferred bool
	// At is when the event was observed, in ms.
	At time.Time
}

// A Moment is an RV and when it was the head, in ms. A later Moment of a stream
// can have an earlier time, see [ClockStep].
type Moment struct {
	RV uint64
	At time.Time
}

// A Span reaches from the oldest retained complete state to the head.
type Span struct{ From, To Moment }

// A Form is what the upstream's lists and bookmarks look like without an
// object.
type Form struct {
	ListKind string       // kind of a list
	Item     *scan.Object // a bookmark, or an equivalent object without a name
	// Definition identifies the CustomResourceDefinition that the objects
	// conform to, in a form that only the writer interprets; "" if it is
	// unknown.
	Definition string
}

// A Stream is the history of one resource in one epoch. One writer calls Begin,
// Append, AppendGap, AppendLate and SetForm. Any goroutine may call the other methods.
type Stream struct {
	s        *Store
	id       streamID
	resource kube.Resource
	epoch    int

	writeMu    sync.Mutex // held by the writer; guards the fields below
	last       map[kube.Key]lastVersion
	lastBytes  int               // of memory
	columnsIDs map[string]uint64 // by columnDefinitions

	damage atomic.Pointer[error]

	mu        sync.Mutex // guards the fields below
	hasWriter bool       // the newest epoch, which a recorder writes
	// heard is closed when the writer has written something; nil if it began the stream.
	heard   chan struct{}
	removed bool // removed, or about to be
	span    Span // zero before Begin
	// appended is the head's time without Observed.
	appended time.Time
	form     Form
	gaps     []Gap
	era      uint64      // number of the last era
	steps    []ClockStep // in the retained span; the last one begins era
	stamp    time.Time   // of the head, with its reading of the monotonic clock if there is one
	// columnsByID are the columnDefinitions of versions.
	columnsByID map[uint64]string
}

// A lastVersion describes the last version of a live object on disk.
type lastVersion struct {
	rv    uint64
	sum   uint64 // hash of its text
	chain uint8  // upper bound of the deltas in a row up to it
}

func newStream(s *Store, id streamID, resource kube.Resource, epoch int) *Stream {
	return &Stream{
		s: s, id: id, resource: resource, epoch: epoch,
		last: map[kube.Key]lastVersion{}, columnsIDs: map[string]uint64{}, columnsByID: map[uint64]string{},
	}
}

// load reads everything about a stream except its versions.
func (st *Stream) load() error {
	var span Span
	var era uint64
	for table, moment := range map[byte]*Moment{tableRetained: &span.From, tableHead: &span.To} {
		value, err := st.s.get(appendKey(nil, table, st.id))
		if err != nil {
			return err
		}
		if len(value) == 24 && table == tableHead {
			value, era = value[:16], binary.BigEndian.Uint64(value[16:])
		}
		if value != nil {
			if *moment, err = parseMoment(value); err != nil {
				return err
			}
		}
	}
	appended := span.To.At
	observed, err := st.s.get(appendKey(nil, tableObserved, st.id))
	if err != nil {
		return err
	}
	if len(observed) == 24 && binary.BigEndian.Uint64(observed) == span.To.RV && binary.BigEndian.Uint64(observed[16:]) == era {
		if at := parseTime(observed[8:]); at.After(span.To.At) {
			span.To.At = at
		}
	}
	var record formRecord
	var form Form
	found, err := st.s.getJSON(appendKey(nil, tableForm, st.id), &record)
	if err != nil {
		return err
	}
	if found {
		item, err := scan.ParseTemplate(record.Item)
		if err != nil {
			return corrupt("the form of %s: %v", st.resource, err)
		}
		item.Row, item.Columns = record.Row, record.Columns
		form = Form{record.ListKind, item, record.Definition}
	}
	gaps, err := st.loadGaps(span.From)
	if err != nil {
		return err
	}
	var steps []ClockStep
	err = st.s.each(appendKey(nil, tableClock, st.id), func(_, value []byte) error {
		s, err := parseClockStep(value)
		steps = append(steps, s)
		return err
	})
	if err != nil {
		return err
	}
	if uint64(len(steps)) > era {
		return corrupt("%s has %d steps of the clock in era %d", st.resource, len(steps), era)
	}
	st.last, st.lastBytes, st.columnsIDs = map[kube.Key]lastVersion{}, 0, map[string]uint64{}
	texts := map[uint64]string{}
	err = st.s.each(appendKey(nil, tableColumns, st.id), func(key, value []byte) error {
		id := binary.BigEndian.Uint64(key[prefixLen:])
		texts[id] = string(value)
		st.columnsIDs[texts[id]] = id
		return nil
	})
	st.mu.Lock()
	defer st.mu.Unlock()
	st.span, st.form, st.gaps, st.columnsByID = span, form, gaps, texts
	st.era, st.steps, st.stamp, st.appended = era, steps, span.To.At, appended
	return err
}

// Resource returns the recorded resource.
func (st *Stream) Resource() kube.Resource { return st.resource }

// Epoch returns the number of the epoch, from 0.
func (st *Stream) Epoch() int { return st.epoch }

// Span returns the retained span; the zero value before Begin.
func (st *Stream) Span() Span {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.span
}

// Damage returns [ErrCorrupt] if Open or Trim found the stream to be damaged,
// and nil otherwise. The writer of a damaged stream should begin a new epoch.
// Retention keeps the stream whole until all of it is too old.
func (st *Stream) Damage() error {
	if err := st.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// damaged records that the stream is damaged.
func (st *Stream) damaged(err error) {
	if st.damage.CompareAndSwap(nil, &err) {
		st.s.opts.Logger.Error("the history of a resource is damaged", "resource", st.resource.String(), "epoch", st.epoch, "err", err)
	}
}

// Head returns the RV up to which everything is recorded, and its time; the
// zero value before Begin.
func (st *Stream) Head() Moment { return st.Span().To }

// Form returns the current form.
func (st *Stream) Form() Form {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.form
}

// Check reports whether the state at rv is known. The error is [ErrBefore],
// [ErrFuture] or [ErrGap], and says what is retained.
func (st *Stream) Check(rv uint64) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch span := st.span; {
	case rv < span.From.RV || span.From.RV == 0:
		return st.rangeError(ErrBefore, rv)
	case rv > span.To.RV:
		return st.rangeError(ErrFuture, rv)
	}
	for _, g := range st.gaps {
		if g.From < rv && rv < g.To {
			return st.gapError(g, rv)
		}
	}
	return nil
}

// rangeError returns the error for an RV or a time at which the state is
// unknown.
func (st *Stream) rangeError(err error, moment any) error {
	name := st.resource.GroupResource()
	if st.span.To.RV == 0 {
		return &RangeError{Err: fmt.Errorf("%w: no %s are recorded", err, name), Resource: st.resource}
	}
	from, to := st.span.From, st.span.To
	rv, _ := moment.(uint64)
	return &RangeError{
		Err:      fmt.Errorf("%w: %v; %s are recorded from %d (%s) to %d (%s)", err, moment, name, from.RV, formatTime(from.At), to.RV, formatTime(to.At)),
		Resource: st.resource, RV: rv, From: from, To: to,
	}
}

// formatTime formats a time for errors.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
