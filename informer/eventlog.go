// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"container/list"
)

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

// A hub brings entries to subscriptions: one log, in which each of them has its
// place. A subscription that falls behind by more than the log may hold leaves
// it and gets a backlog of its own, which has what there is to tell by object,
// until it has caught up: its memory is bounded by the objects that it knows
// and those that there are, whatever their number of changes. It is guarded by
// the informer's lock.
type hub[T any] struct {
	bound  int
	log    []entry[T]
	first  uint64 // number of log[0]
	subs   map[*subscription[T]]bool
	silent int // entries that nobody has been woken for
}

// A subscription is a reader's place.
type subscription[T any] struct {
	wake chan struct{} // has room for one; filled when there may be something

	// Guarded by the informer's lock.
	next    uint64      // in the log
	backlog *backlog[T] // not nil: its place is not in the log
	over    bool        // nothing more will come
	run     int         // the only run it is for; 0 for all

	// The reader's own.
	taken []entry[T]
}

// batch is how many entries are taken under the lock at a time.
const batch = 64

func (h *hub[T]) end() uint64 { return h.first + uint64(len(h.log)) }

// subscribe enters a subscription at the end of the log.
func (h *hub[T]) subscribe() *subscription[T] {
	s := &subscription[T]{wake: make(chan struct{}, 1), next: h.end()}
	h.subs[s] = true
	return s
}

func (h *hub[T]) unsubscribe(s *subscription[T]) {
	delete(h.subs, s)
	s.over, s.backlog = true, nil
	s.notify()
	h.trim()
}

// publish appends an entry and wakes the subscriptions.
func (h *hub[T]) publish(e entry[T]) {
	h.enter(e)
	h.wake()
}

// enter appends an entry, of many perhaps: subscriptions are woken now and then,
// since to wake a goroutine may cost more than the entry does. The last enter is
// followed by wake.
func (h *hub[T]) enter(e entry[T]) {
	if len(h.subs) == 0 {
		return
	}
	h.log = append(h.log, e)
	full := len(h.log) > h.bound
	for s := range h.subs {
		switch {
		case s.backlog != nil:
			s.backlog.add(e)
		case full && s.next == h.first:
			s.backlog = &backlog[T]{}
			for _, e := range h.log {
				s.backlog.add(e)
			}
		}
	}
	if full {
		h.trim()
	}
	if h.silent++; h.silent > min(batch, h.bound/16) {
		h.wake()
	}
}

// wake wakes the subscriptions if something has been published since.
func (h *hub[T]) wake() {
	if h.silent == 0 {
		return
	}
	h.silent = 0
	for s := range h.subs {
		s.notify()
	}
}

func (s *subscription[T]) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// trim drops what every subscription has been told.
func (h *hub[T]) trim() {
	least := h.end()
	for s := range h.subs {
		if s.backlog == nil {
			least = min(least, s.next)
		}
	}
	drop := int(least - h.first)
	h.first = least
	// What is dropped is to be let go of, and its room used again.
	if rest := h.log[drop:]; len(rest) <= drop {
		n := copy(h.log, rest)
		clear(h.log[n:])
		h.log = h.log[:n]
	} else {
		clear(h.log[:drop])
		h.log = rest
	}
}

// take moves the next entries to what the subscription has taken.
func (h *hub[T]) take(s *subscription[T]) {
	if s.backlog != nil {
		s.taken = s.backlog.take(s.taken, batch)
		if s.backlog.empty() {
			s.backlog, s.next = nil, h.end()
			h.trim()
		}
		return
	}
	from := int(s.next - h.first)
	n := min(len(h.log)-from, batch)
	s.taken = append(s.taken, h.log[from:from+n]...)
	if s.next += uint64(n); n > 0 && from == 0 {
		h.trim()
	}
}

// behind returns how many entries a subscription is yet to take.
func (h *hub[T]) behind(s *subscription[T]) int {
	if s.backlog != nil {
		return s.backlog.order.Len()
	}
	return int(h.end() - s.next)
}

// A backlog is what one subscription is yet to be told, by object, in the order
// in which there was first something to tell of it. The zero backlog is empty.
type backlog[T any] struct {
	order list.List // of *told[T]
	byKey map[string]*list.Element
	err   *list.Element // the last error stands for those before
}

type told[T any] struct {
	key string
	pending[T]
	special entry[T] // Synced or an error, which no pending stands for
}

func (b *backlog[T]) empty() bool { return b.order.Len() == 0 }

func (b *backlog[T]) add(e entry[T]) {
	o := e.object()
	if o == nil {
		if e.err != nil && b.err != nil {
			b.order.Remove(b.err)
		}
		added := b.order.PushBack(&told[T]{special: e})
		if e.err != nil {
			b.err = added
		}
		return
	}
	at := b.byKey[o.key()]
	if at == nil {
		if b.byKey == nil {
			b.byKey = map[string]*list.Element{}
		}
		at = b.order.PushBack(&told[T]{key: o.key()})
		b.byKey[o.key()] = at
	}
	t := at.Value.(*told[T])
	if t.add(e); t.empty() {
		b.remove(at)
	}
}

func (b *backlog[T]) remove(at *list.Element) {
	if at == b.err {
		b.err = nil
	}
	t := b.order.Remove(at).(*told[T])
	if t.n > 0 {
		delete(b.byKey, t.key)
	}
}

// take removes about n entries and appends them to out.
func (b *backlog[T]) take(out []entry[T], n int) []entry[T] {
	for at := b.order.Front(); at != nil && n > 0; at = b.order.Front() {
		t := at.Value.(*told[T])
		if t.n == 0 {
			out = append(out, t.special)
		} else {
			out = t.entries(out)
		}
		b.remove(at)
		n--
	}
	return out
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
