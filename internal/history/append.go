// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"iter"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// Begin records the first list of a stream. The objects must not be read from
// the same store while Begin runs.
func (st *Stream) Begin(form Form, objects iter.Seq[*scan.Object], rv uint64, at time.Time) error {
	w, err := st.newWriteBatch()
	if err != nil {
		return err
	}
	defer w.close()
	if w.span.To.RV != 0 {
		return errBegun
	}
	for _, table := range []byte{tableVersions, tableNames} { // left by an interrupted Begin
		if err := w.batch.DeleteRange(appendKey(nil, table, st.id), prefixEnd(appendKey(nil, table, st.id)), nil); err != nil {
			return err
		}
	}
	st.last, st.lastBytes = map[kube.Key]lastVersion{}, 0
	maxBatch := maxBeginBatch
	if st.s.opts.Temporary {
		maxBatch = temporaryMemTableSize / 2
	}
	for o := range objects {
		if err := w.addVersion(&Event{Type: kube.Added, Object: o, At: at}); err != nil {
			return err
		}
		if w.batch.Len() < maxBatch {
			continue
		}
		// A part of the list. It is invisible until there is a head.
		if err := st.s.commit(w.batch); err != nil {
			return err
		}
		if err := w.batch.Close(); err != nil {
			return err
		}
		w.batch = st.s.db.NewBatch()
		w.remember()
		clear(w.last)
		clear(w.lifetimes) // an object that the list repeats is looked up
	}
	if err := w.setForm(form); err != nil {
		return err
	}
	w.begins = true
	w.span.From = Moment{rv, at.Truncate(time.Millisecond)}
	if err := w.batch.Set(appendKey(nil, tableRetained, st.id), appendMoment(nil, w.span.From), nil); err != nil {
		return err
	}
	if err := w.moveHead(Moment{rv, at}); err != nil {
		return err
	}
	return w.commit()
}

// maxBeginBatch is how many bytes of a first list are written in one batch.
const maxBeginBatch = 8 << 20

// Append records events in the order of their RVs, and moves the head to rv.
// RVs must be above the head and at most rv. An event may also be at the head
// itself: several objects can be deleted at one RV. Without events only the
// head moves. When Append returns nil, the events are on disk (T9); otherwise
// nothing has changed.
func (st *Stream) Append(events []Event, rv uint64, at time.Time) error {
	return st.append(events, rv, at, nil)
}

// AppendGap records a [Gap] between the head and rv, with the inferred events.
func (st *Stream) AppendGap(events []Event, rv uint64, at time.Time) error {
	head := st.Head()
	return st.append(events, rv, at, &head)
}

// EndGap records a [Gap] between an earlier head and rv. The inferred events in
// it have been appended in parts, which readers must not have seen.
func (st *Stream) EndGap(from Moment, rv uint64, at time.Time) error {
	return st.append(nil, rv, at, &from)
}

// append appends events, and a gap that begins at gapFrom unless it is nil.
func (st *Stream) append(events []Event, rv uint64, at time.Time, gapFrom *Moment) error {
	w, err := st.newWriteBatch()
	if err != nil {
		return err
	}
	defer w.close()
	head := w.span.To
	if head.RV == 0 {
		return errNotBegun
	}
	if rv < head.RV {
		return fmt.Errorf("history: append up to %d is below the head %d", rv, head.RV)
	}
	before := head.RV
	for i := range events {
		e := events[i]
		if e.Object.RV < head.RV || e.Object.RV > rv {
			return fmt.Errorf("history: event at %d in an append from %d to %d", e.Object.RV, head.RV, rv)
		}
		if e.At, err = w.observe(e.At, before); err != nil {
			return err
		}
		if err := w.addVersion(&e); err != nil {
			return err
		}
		if err := w.addLogEntry(&e); err != nil {
			return err
		}
		before = e.Object.RV
	}
	if at, err = w.observe(at, before); err != nil {
		return err
	}
	if gapFrom != nil && rv > gapFrom.RV {
		w.gap = &Gap{From: gapFrom.RV, To: rv, Since: gapFrom.At, Until: at}
		if err := w.batch.Set(numberKey(tableGaps, st.id, gapFrom.RV), appendGap(nil, *w.gap), nil); err != nil {
			return err
		}
	}
	if err := w.moveHead(Moment{rv, at}); err != nil {
		return err
	}
	return w.commit()
}

// SetForm records the form of later lists and bookmarks.
func (st *Stream) SetForm(form Form) error {
	w, err := st.newWriteBatch()
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.setForm(form); err != nil {
		return err
	}
	return w.commit()
}
