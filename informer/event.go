// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

// An EventType is what has happened.
type EventType string

// The types of events.
const (
	Added   EventType = "ADDED"
	Updated EventType = "UPDATED"
	Deleted EventType = "DELETED"
	// Synced says once that what there was in the beginning has been told.
	Synced EventType = "SYNCED"
)

// An Event is one change of one object as a subscriber is told of it.
type Event[T any] struct {
	Type EventType
	Key  Key // zero for Synced
	// Old is the version before, as this subscriber knows it; for Deleted it
	// is the last one there was. Zero for Added.
	Old Ref[T]
	// New is the version now. Zero for Deleted.
	New Ref[T]
	// Initial marks an Added of an object that was there in the beginning.
	Initial bool
	// Inferred marks a Deleted that was learned from the absence of the
	// object: Old may not be the very last version then.
	Inferred bool
	// Coalesced marks an event that stands for several, since the subscriber
	// was too slow to be told of each.
	Coalesced bool
}

// Object returns the object that the event is about: New, or Old of a Deleted.
func (e Event[T]) Object() Ref[T] {
	if e.Type == Deleted {
		return e.Old
	}
	return e.New
}

// An entry is an event, or an error, as the log has it.
type entry[T any] struct {
	typ                          EventType // "" for an error
	old, now                     *record[T]
	initial, inferred, coalesced bool
	err                          error
}

// object returns the record that the entry is about; nil for Synced and errors.
func (e *entry[T]) object() *record[T] {
	if e.now != nil {
		return e.now
	}
	return e.old
}

func (e *entry[T]) event() Event[T] {
	ev := Event[T]{Type: e.typ, Old: Ref[T]{e.old}, New: Ref[T]{e.now},
		Initial: e.initial, Inferred: e.inferred, Coalesced: e.coalesced}
	ev.Key = ev.Object().Key()
	return ev
}

// A pending is what a subscriber is yet to be told of one object: it stands for
// any number of entries.
type pending[T any] struct {
	n     int        // entries
	known *record[T] // what the subscriber knows; nil if it does not know the object
	gone  *record[T] // the last version of known, if that has been deleted
	now   *record[T] // what there is; nil if there is nothing

	initial, inferred bool
}

func (p *pending[T]) add(e entry[T]) {
	if p.n == 0 {
		p.known, p.initial = e.old, e.initial
	}
	p.n++
	if p.now = e.now; e.typ == Deleted && p.known != nil && p.gone == nil {
		p.gone, p.inferred = e.old, e.inferred
	}
}

// empty reports whether there is nothing to tell: an object that the subscriber
// has never heard of has come and gone.
func (p *pending[T]) empty() bool { return p.gone == nil && p.now == nil }

// entries returns what there is to tell, appended to out.
func (p *pending[T]) entries(out []entry[T]) []entry[T] {
	from := len(out)
	if p.gone != nil {
		out = append(out, entry[T]{typ: Deleted, old: p.gone, inferred: p.inferred})
		p.known = nil
	}
	switch {
	case p.now == nil:
	case p.known == nil:
		out = append(out, entry[T]{typ: Added, now: p.now, initial: p.initial && p.gone == nil})
	default:
		out = append(out, entry[T]{typ: Updated, old: p.known, now: p.now})
	}
	for i := range out[from:] {
		out[from+i].coalesced = p.n > len(out)-from
	}
	return out
}
