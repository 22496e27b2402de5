// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// An Event is one change of one object.
type Event struct {
	Type kube.EventType // Added, Modified or Deleted
	// Object is the state after the change, at its RV; that of a deletion is the
	// last state.
	Object *scan.Object
	// Prev is the version before it, nil for an Added. A writer that does not
	// hold it may leave it out: then it is read from disk.
	Prev *scan.Object
	// Inferred marks a change learned from a list.
	Inferred bool
	// At is when it was observed, to the millisecond.
	At time.Time
}

// A Moment is an RV and when it was the head, to the millisecond.
type Moment struct {
	RV uint64
	At time.Time
}

// A Span is from the oldest complete state that is retained up to the head.
type Span struct{ From, To Moment }

// A Gap is a span of which only the outcome is known. Its ends are known
// states; nothing between them was observed.
type Gap struct {
	From, To     uint64
	Since, Until time.Time
}

// A Form is what the upstream's answers look like where there is no object.
type Form struct {
	ListKind string       // the kind of its lists
	Item     *scan.Object // a bookmark, or what takes its place
	// Definition tells which definition of a custom resource the objects are under,
	// in the writer's words; "" if that is not known.
	Definition string
}

// A Stream is the history of one resource in one epoch. It has one writer,
// which calls Begin, the Appends and SetForm; all other methods may be called by
// any goroutine.
type Stream struct {
	s        *Store
	id       streamID
	resource kube.Resource
	epoch    int

	writing sync.Mutex // held by the writer; guards what follows
	last    map[kube.Key]stored
	columns map[string]uint64 // by their text

	damage atomic.Pointer[error]

	mu   sync.Mutex // guards what follows
	held bool       // it has a writer
	gone bool       // it is being removed, or was
	span Span       // zero before Begin
	form Form
	gaps []Gap
	// texts are the columns, by number.
	texts map[uint64]string
}

// stored is what the last version of a live object is on disk.
type stored struct {
	rv    uint64
	sum   uint64 // of its text
	chain uint8  // deltas in a row up to it, at the most
}

func newStream(s *Store, id streamID, resource kube.Resource, epoch int) *Stream {
	return &Stream{
		s: s, id: id, resource: resource, epoch: epoch,
		last: map[kube.Key]stored{}, columns: map[string]uint64{}, texts: map[uint64]string{},
	}
}

// load reads all of a stream but its versions, in place of what is known.
func (st *Stream) load() error {
	var span Span
	for table, moment := range map[byte]*Moment{tableRetained: &span.From, tableHead: &span.To} {
		value, err := st.s.get(appendKey(nil, table, st.id))
		if err != nil {
			return err
		}
		if value != nil {
			if *moment, err = parseMoment(value); err != nil {
				return err
			}
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
	var gaps []Gap
	err = st.s.each(appendKey(nil, tableGaps, st.id), func(key, value []byte) error {
		g, err := parseGap(binary.BigEndian.Uint64(key[prefixLen:]), value)
		if g.To > span.From.RV {
			gaps = append(gaps, g)
		}
		return err
	})
	if err != nil {
		return err
	}
	st.last, st.columns = map[kube.Key]stored{}, map[string]uint64{}
	texts := map[uint64]string{}
	err = st.s.each(appendKey(nil, tableColumns, st.id), func(key, value []byte) error {
		id := binary.BigEndian.Uint64(key[prefixLen:])
		texts[id] = string(value)
		st.columns[texts[id]] = id
		return nil
	})
	st.mu.Lock()
	defer st.mu.Unlock()
	st.span, st.form, st.gaps, st.texts = span, form, gaps, texts
	return err
}

// Resource returns whose history it is.
func (st *Stream) Resource() kube.Resource { return st.resource }

// Epoch returns the number of the epoch, from 0.
func (st *Stream) Epoch() int { return st.epoch }

// Span returns what is retained, the zero value before Begin.
func (st *Stream) Span() Span {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.span
}

// Damage returns [ErrCorrupt] if the stream was found damaged by Open or Trim, and
// nil if that is not known. Nothing is removed from such a stream, until all of it
// is: its writer is to begin a new epoch.
func (st *Stream) Damage() error {
	if err := st.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// damaged notes that the stream is damaged.
func (st *Stream) damaged(err error) {
	if st.damage.CompareAndSwap(nil, &err) {
		st.s.opts.Logger.Error("the history of a resource is damaged", "resource", st.resource.String(), "epoch", st.epoch, "err", err)
	}
}

// Head returns up to where all is recorded; the zero value when nothing is.
func (st *Stream) Head() Moment { return st.Span().To }

// Form returns what answers look like where there is no object.
func (st *Stream) Form() Form {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.form
}

// Gaps returns the gaps in the retained span, the oldest first.
func (st *Stream) Gaps() []Gap {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.gaps)
}

// Check reports whether the state at rv is known: nil, [ErrBefore], [ErrFuture]
// or [ErrGap], with what is retained.
func (st *Stream) Check(rv uint64) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch span := st.span; {
	case rv < span.From.RV || span.From.RV == 0:
		return st.refuse(ErrBefore, rv)
	case rv > span.To.RV:
		return st.refuse(ErrFuture, rv)
	}
	for _, g := range st.gaps {
		if g.From < rv && rv < g.To {
			return fmt.Errorf("%w; between %d (%s) and %d (%s) nothing was observed", st.refuse(ErrGap, rv), g.From, stamp(g.Since), g.To, stamp(g.Until))
		}
	}
	return nil
}

// refuse returns the error for a moment that is not known.
func (st *Stream) refuse(err error, moment any) error {
	name := st.resource.GroupResource()
	if st.span.To.RV == 0 {
		return fmt.Errorf("%w: nothing of %s is recorded", err, name)
	}
	from, to := st.span.From, st.span.To
	return fmt.Errorf("%w: %v; %s are recorded from %d (%s) to %d (%s)", err, moment, name, from.RV, stamp(from.At), to.RV, stamp(to.At))
}

// stamp is a time as errors show it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
