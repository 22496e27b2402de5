// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
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
	maxBatch := int(st.s.memTableSize() / beginBatches)
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
		w.batch = st.s.db.NewBatchWithSize(maxBatch + maxBatch/4) // with the object that fills it
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

// beginBatches is how many batches of a first list fill a memory table. Pebble does not copy
// a batch of half a table into one, but keeps the batch itself, for a while even after it has
// been written to disk.
const beginBatches = 4

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
	if rv == head.RV {
		return st.Append(events, rv, at)
	}
	return st.append(events, rv, at, &Gap{From: head.RV, To: rv, Since: head.At})
}

// AppendLate records a late [Gap] from since, or the last append if that is later, and the
// events of that time, which have come at its end. Their times are replaced by at. A late gap
// that begins where the last one ends continues it. It may begin before a time that Observed
// has recorded: what was believed to be a watch was none.
func (st *Stream) AppendLate(events []Event, rv uint64, since, at time.Time) error {
	st.mu.Lock()
	head, appended := st.span.To, st.appended
	st.mu.Unlock()
	if since = since.Truncate(time.Millisecond); appended.After(since) {
		since = appended
	}
	if !since.Before(at.Truncate(time.Millisecond)) {
		return st.Append(events, rv, at)
	}
	late := slices.Clone(events)
	for i := range late {
		late[i].At = at
	}
	return st.append(late, rv, at, &Gap{From: head.RV, To: head.RV, Since: since})
}

// EndGap records a [Gap] between an earlier head and rv, a late one if rv is that of the
// head. The inferred events in it have been appended in parts, which readers must not have
// seen.
func (st *Stream) EndGap(from Moment, rv uint64, at time.Time) error {
	return st.append(nil, rv, at, &Gap{From: from.RV, To: rv, Since: from.At})
}

// append appends events, and a gap that ends at their end unless it is nil.
func (st *Stream) append(events []Event, rv uint64, at time.Time, gap *Gap) error {
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
	if gap != nil {
		gap.Until = at
		if err := gap.set(w); err != nil {
			return err
		}
	}
	if err := w.moveHead(Moment{rv, at}); err != nil {
		return err
	}
	w.heard = true
	return w.commit()
}

// Observed records that the heads of streams are still the newest states, until the given
// times. It is one write for all of them. What has been observed by then must have been
// appended. Where the head is later, or the clock was set back, the stream is left as it is.
func (s *Store) Observed(until map[*Stream]time.Time) error {
	if err := s.acquire(); err != nil {
		return err
	}
	defer s.release()
	if err := s.checkDiskSpace(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer b.Close()
	heads := map[*Stream]uint64{}
	for st, at := range until {
		st.mu.Lock()
		head, era, last, stays := st.span.To, st.era, st.stamp, st.removed || st.span.To.RV == 0
		st.mu.Unlock()
		if _, stepped := stepBack(last, at); stays || stepped || !at.After(head.At) {
			continue // a step of the clock is recorded by Trim, or by the next write
		}
		value := binary.BigEndian.AppendUint64(appendMoment(nil, Moment{head.RV, at}), era)
		if err := b.Set(appendKey(nil, tableObserved, st.id), value, nil); err != nil {
			return err
		}
		heads[st] = head.RV
	}
	if len(heads) == 0 {
		return nil
	}
	if err := s.commit(b); err != nil {
		return err
	}
	for st, rv := range heads {
		st.mu.Lock()
		if at := until[st]; st.span.To.RV == rv && at.Truncate(time.Millisecond).After(st.span.To.At) {
			st.span.To.At, st.stamp = at.Truncate(time.Millisecond), at
		}
		st.hear()
		st.mu.Unlock()
	}
	return nil
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

// Withdraw takes back what Observed has recorded since the last append: what was believed to be
// a watch was none, or was behind since a time. If that is before the last append, the events in
// between have come late, and a late [Gap] says so. It begins after the last gap, in the last era.
func (st *Stream) Withdraw(ctx context.Context, since time.Time) error {
	w, err := st.newWriteBatch()
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.batch.Delete(appendKey(nil, tableObserved, st.id), nil); err != nil {
		return err
	}
	eras, gaps := st.eras(), st.Gaps()
	last := eras[len(eras)-1]
	st.mu.Lock()
	w.span.To.At = st.appended
	st.mu.Unlock()
	if since = since.Truncate(time.Millisecond); since.Before(last.from.At) {
		since = last.from.At
	}
	if n := len(gaps); n > 0 && since.Before(gaps[n-1].Until) {
		since = gaps[n-1].Until
	}
	if since.Before(w.span.To.At) {
		at, err := st.stateAt(ctx, last, since)
		if err != nil {
			return err
		}
		if err := (Gap{From: at.RV, To: at.RV, Since: since, Until: w.span.To.At}).set(w); err != nil {
			return err
		}
	}
	return w.commit()
}
