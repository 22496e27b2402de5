// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// This file reads events: those of a stream (Events, LastEvents), and those of
// one object (Versions, LastVersions). A span of RVs is (from, to]: it excludes
// from and includes to. Every event has the version before it (T3). All methods
// end with the cause of ctx when it is canceled, and with [ErrBefore] when
// retention has overtaken the reader.

// maxVersionsRead is how many versions of one object are read at a time.
const maxVersionsRead = 256

// Events yields the events in (from, to] in order of their RVs. An error is the
// last element. It reads thousands of events ahead, within the store's read
// budget: see [Store.ReadUsage].
func (st *Stream) Events(ctx context.Context, from, to uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		p := &replay{st: st, n: minReadEvents, size: defaultEventSize, index: map[kube.Key]uint32{}}
		st.s.readBudget.Enter()
		defer p.end()
		for more := true; more; {
			if err := context.Cause(ctx); err != nil {
				yield(Event{}, err)
				return
			}
			p.reserve(to - from)
			began := time.Now()
			next, more2, err := p.read(from, to)
			if err != nil {
				yield(Event{}, err)
				return
			}
			from, more = next, more2
			busy := time.Since(began)
			stopped, err := p.emit(ctx, func(e Event) bool { return yield(e, nil) })
			if stopped {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			p.adapt(busy, time.Since(began))
		}
	}
}

// LastEvents returns the last n events in (from, to], in order: more than n if
// the first of them shares its RV with others.
func (st *Stream) LastEvents(ctx context.Context, from, to uint64, n int) ([]Event, error) {
	first, err := st.firstOfLast(ctx, appendKey(nil, tableLog, st.id), from, to, n)
	if err != nil || first == 0 {
		return nil, err
	}
	return collectUpTo(st.Events(ctx, first-1, to), to)
}

// Versions yields the events of one object above rv, in order. If rv is older
// than what is retained, it begins at the oldest retained state; the first
// event's Prev, or Get, is the object in that state. An error is the last
// element.
func (st *Stream) Versions(ctx context.Context, key kube.Key, rv uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		rv = max(rv, st.Span().From.RV)
		var r versionReader
		var prev objectText
		var events []Event
		for first, more := true, true; more; first = false {
			err := st.read(ctx, rv, &r, func() (err error) {
				if first {
					if prev, err = r.get(key, rv); err != nil {
						return err
					}
				}
				events, prev, more, err = r.versions(events[:0], key, rv, prev)
				return err
			})
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				rv = e.Object.RV
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// LastVersions returns the last n events of one object in (from, to], in order.
func (st *Stream) LastVersions(ctx context.Context, key kube.Key, from, to uint64, n int) ([]Event, error) {
	prefix := appendVersionKey(nil, st.id, key, 0)
	first, err := st.firstOfLast(ctx, prefix[:len(prefix)-8], from, to, n)
	if err != nil || first == 0 {
		return nil, err
	}
	return collectUpTo(st.Versions(ctx, key, first-1), to)
}

// versions appends up to maxVersionsRead events of an object above rv. prev is the object
// at rv; the result is the one after them. More is true if there may be others.
func (r *versionReader) versions(events []Event, key kube.Key, rv uint64, prev objectText) (all []Event, next objectText, more bool, err error) {
	for r.it.SeekGE(appendVersionKey(nil, r.st.id, key, rv+1)); r.it.Valid(); r.it.Next() {
		got, at, v, err := r.current()
		if err != nil || got != key {
			return events, prev, false, err
		}
		made, err := r.b.make(prev, key, at, v)
		if err != nil {
			return events, prev, false, err
		}
		events = append(events, Event{Type: v.typ, Object: made.o, Prev: prev.o, Inferred: v.inferred, At: v.at})
		if prev = made; v.typ == kube.Deleted {
			prev = objectText{}
		}
		if len(events) == maxVersionsRead {
			return events, prev, true, nil
		}
	}
	return events, prev, false, r.it.Error()
}

// firstOfLast looks at the keys that consist of a prefix and an RV in (from,
// to]. It returns the RV of the first of the last n, 0 if there are none.
func (st *Stream) firstOfLast(ctx context.Context, prefix []byte, from, to uint64, n int) (first uint64, err error) {
	if from = max(from, st.Span().From.RV); n <= 0 || to <= from {
		return 0, nil
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	if err := st.s.acquire(); err != nil {
		return 0, err
	}
	defer st.s.release()
	bound := func(rv uint64) []byte { return binary.BigEndian.AppendUint64(append([]byte{}, prefix...), rv) }
	it, err := st.s.iter(bound(from+1), bound(to+1))
	if err != nil {
		return 0, err
	}
	for it.Last(); it.Valid() && n > 0; it.Prev() {
		first = binary.BigEndian.Uint64(it.Key()[len(prefix):])
		n--
	}
	return first, damage(errors.Join(it.Error(), it.Close()))
}

// collectUpTo returns the events up to an RV.
func collectUpTo(events iter.Seq2[Event, error], rv uint64) (out []Event, err error) {
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if e.Object.RV > rv {
			break
		}
		out = append(out, e)
	}
	return out, nil
}

// A Match selects events by their object and type, which the log has.
type Match func(kube.Key, kube.EventType) bool

// A Search is a search for the newest events that a Match selects.
type Search struct {
	Match Match
	// From and To bound the RVs: From < RV <= To.
	From, To uint64
	// Since ends the search at an older event.
	Since time.Time
	// Events is how many events to find, Scan how many entries of the log to read.
	Events, Scan int
}

// Found is what a [Search] has found.
type Found struct {
	// Events are in order. There are more than asked for if the first one shares its RV
	// with others.
	Events []Event
	// Rest is the RV up to which the log was not read: From if all of it was.
	Rest uint64
	// Scanned is how many entries were read.
	Scanned int
}

// Search returns the newest events that match. It reads the log, which is small, and then
// only the versions that match.
func (st *Stream) Search(ctx context.Context, q Search) (Found, error) {
	found, hits, err := st.searchLog(ctx, q)
	if err != nil {
		return found, err
	}
	for _, hit := range slices.Backward(hits) {
		// None if retention has removed it meanwhile.
		events, err := st.LastVersions(ctx, hit.key, hit.rv-1, hit.rv, 1)
		if err != nil {
			return found, err
		}
		found.Events = append(found.Events, events...)
	}
	return found, nil
}

// A hit is an entry of the log that matches.
type hit struct {
	key kube.Key
	rv  uint64
}

// searchLog returns the hits, the newest first.
func (st *Stream) searchLog(ctx context.Context, q Search) (found Found, hits []hit, err error) {
	if err := st.s.acquire(); err != nil {
		return found, nil, err
	}
	defer st.s.release()
	found.Rest = max(q.From, st.Span().From.RV)
	if q.To <= found.Rest {
		return found, nil, nil
	}
	it, err := st.s.iter(appendLogKey(nil, st.id, found.Rest+1, ""), appendLogKey(nil, st.id, q.To+1, ""))
	if err != nil {
		return found, nil, err
	}
	defer func() { err = damage(errors.Join(err, it.Error(), it.Close())) }()
	last := uint64(0)
	for it.Last(); it.Valid(); it.Prev() {
		k := it.Key()
		rv := binary.BigEndian.Uint64(k[prefixLen:])
		// The events at one RV stay together.
		if rv != last && (len(hits) >= q.Events || found.Scanned >= q.Scan) {
			found.Rest = rv
			return found, hits, nil
		}
		last = rv
		if found.Scanned++; found.Scanned%1024 == 0 && ctx.Err() != nil {
			return found, nil, context.Cause(ctx)
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return found, nil, err
		}
		v, _, err := parseFlags(value)
		if err != nil {
			return found, nil, err
		}
		if v.at.Before(q.Since) {
			break
		}
		if key := kube.Key(k[prefixLen+8:]); q.Match(key, v.typ) {
			hits = append(hits, hit{key, rv})
		}
	}
	return found, hits, nil
}
