// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "container/list"

// An entry is an event, or an error, as the log stores it.
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
	ev.Key = ev.Ref().Key()
	return ev
}

// An eventLog distributes entries to subscriptions. Each subscription is a
// cursor into one shared log. A subscription that lags by more entries than the
// log may hold leaves it and gets its own backlog, which coalesces entries
// by object, until it has caught up. So the memory of a subscription is bounded
// by the objects that it knows and those that exist, whatever the number of
// their changes. The informer's lock guards an eventLog.
type eventLog[T any] struct {
	maxEntries int
	entries    []entry[T]
	first      uint64 // number of entries[0]
	subs       map[*subscription[T]]bool
	unsignaled int // entries for which no subscription has been woken yet
}

// A subscription is one subscriber's position in the log.
type subscription[T any] struct {
	wake chan struct{} // capacity 1; filled when there may be entries, or an end

	// Guarded by the informer's lock.
	next    uint64      // entry of the log to take; unused with a backlog
	backlog *backlog[T] // nil unless the subscription lags, or is new
	closed  bool
	// transient makes the backlog report objects that were added and deleted while the
	// subscriber lagged.
	transient bool
	run       int   // the only run that it is for; 0 for all
	stopped   error // why that had ended before the subscription began; nil if it had not

	// The subscriber's own.
	taken []entry[T]
}

// maxTake is how many entries are taken under the lock at a time.
const maxTake = 64

func (l *eventLog[T]) end() uint64 { return l.first + uint64(len(l.entries)) }

// subscribe adds a subscription at the end of the log.
func (l *eventLog[T]) subscribe() *subscription[T] {
	s := &subscription[T]{wake: make(chan struct{}, 1), next: l.end()}
	l.subs[s] = true
	return s
}

func (l *eventLog[T]) unsubscribe(s *subscription[T]) {
	delete(l.subs, s)
	s.closed, s.backlog = true, nil
	s.signal()
	l.trim()
}

// publish appends an entry and wakes the subscriptions.
func (l *eventLog[T]) publish(e entry[T]) {
	l.append(e)
	l.wake()
}

// append appends an entry. Subscriptions are woken only every few entries:
// waking a goroutine can cost more than delivering an entry. Callers call wake
// after the last entry.
func (l *eventLog[T]) append(e entry[T]) {
	if len(l.subs) == 0 {
		return
	}
	l.entries = append(l.entries, e)
	full := len(l.entries) > l.maxEntries
	for s := range l.subs {
		switch {
		case s.backlog != nil:
			s.backlog.add(e)
		case full && s.next == l.first:
			s.backlog = &backlog[T]{transient: s.transient}
			for _, e := range l.entries {
				s.backlog.add(e)
			}
		}
	}
	if full {
		l.trim()
	}
	if l.unsignaled++; l.unsignaled > min(maxTake, l.maxEntries/16) {
		l.wake()
	}
}

// wake wakes the subscriptions if entries have been appended since the last
// time.
func (l *eventLog[T]) wake() {
	if l.unsignaled == 0 {
		return
	}
	l.unsignaled = 0
	for s := range l.subs {
		s.signal()
	}
}

func (s *subscription[T]) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// trim drops the entries that every subscription has taken.
func (l *eventLog[T]) trim() {
	needed := l.end()
	for s := range l.subs {
		if s.backlog == nil {
			needed = min(needed, s.next)
		}
	}
	drop := int(needed - l.first)
	l.first = needed
	// Reuse the array if at least half of it is free, and clear the dropped
	// entries, which would keep objects alive.
	if rest := l.entries[drop:]; len(rest) <= drop {
		n := copy(l.entries, rest)
		clear(l.entries[n:])
		l.entries = l.entries[:n]
	} else {
		clear(l.entries[:drop])
		l.entries = rest
	}
}

// take moves the next entries to s.taken.
func (l *eventLog[T]) take(s *subscription[T]) {
	if s.backlog != nil {
		s.taken = s.backlog.take(s.taken, maxTake)
		if s.backlog.isEmpty() {
			s.backlog, s.next = nil, l.end()
			l.trim()
		}
		return
	}
	from := int(s.next - l.first)
	n := min(len(l.entries)-from, maxTake)
	s.taken = append(s.taken, l.entries[from:from+n]...)
	if s.next += uint64(n); n > 0 && from == 0 {
		l.trim()
	}
}

// lag returns how many entries a subscription has not taken yet.
func (l *eventLog[T]) lag(s *subscription[T]) int {
	if s.backlog != nil {
		return s.backlog.order.Len()
	}
	return int(l.end() - s.next)
}

// A backlog has the entries of one subscription coalesced by object, in the
// order of the first entry of each. The zero backlog is empty.
type backlog[T any] struct {
	transient bool      // of the subscription
	order     list.List // of *backlogItem[T]
	byKey     map[string]*list.Element
	lastErr   *list.Element // errors are coalesced into the last one
}

// A backlogItem has the coalesced entries of an object; or Synced or an error,
// which are of no object.
type backlogItem[T any] struct {
	key string
	coalesced[T]
	special entry[T] // if coalesced has no entry
}

func (b *backlog[T]) isEmpty() bool { return b.order.Len() == 0 }

func (b *backlog[T]) add(e entry[T]) {
	o := e.object()
	if o == nil {
		if e.err != nil && b.lastErr != nil {
			b.order.Remove(b.lastErr)
		}
		added := b.order.PushBack(&backlogItem[T]{special: e})
		if e.err != nil {
			b.lastErr = added
		}
		return
	}
	at := b.byKey[o.key()]
	if at == nil {
		if b.byKey == nil {
			b.byKey = map[string]*list.Element{}
		}
		at = b.order.PushBack(&backlogItem[T]{key: o.key()})
		b.byKey[o.key()] = at
	}
	it := at.Value.(*backlogItem[T])
	if b.transient && e.typ == Deleted && it.n > 0 && (it.known == nil || it.gone != nil) {
		it.lost = e.old
	}
	if it.add(e); it.isEmpty() {
		b.remove(at)
	}
}

func (b *backlog[T]) remove(at *list.Element) {
	if at == b.lastErr {
		b.lastErr = nil
	}
	it := b.order.Remove(at).(*backlogItem[T])
	if it.n > 0 {
		delete(b.byKey, it.key)
	}
}

// take removes up to n items and appends their entries to out.
func (b *backlog[T]) take(out []entry[T], n int) []entry[T] {
	for at := b.order.Front(); at != nil && n > 0; at = b.order.Front() {
		it := at.Value.(*backlogItem[T])
		if it.n == 0 {
			out = append(out, it.special)
		} else {
			out = it.appendEntries(out)
		}
		b.remove(at)
		n--
	}
	return out
}

// coalesced stands for any number of entries of one name that a subscriber has
// not received yet.
type coalesced[T any] struct {
	n     int        // entries
	known *record[T] // the version that the subscriber has; nil if it has none
	gone  *record[T] // the last version of known, if that was deleted
	lost  *record[T] // the last version of an unknown object that was deleted, if that is reported
	now   *record[T] // the current version; nil if there is none

	initial  bool // of the first entry
	inferred bool // of the deletion
}

func (c *coalesced[T]) add(e entry[T]) {
	if c.n == 0 {
		c.known, c.initial = e.old, e.initial
	}
	c.n++
	if c.now = e.now; e.typ == Deleted && c.known != nil && c.gone == nil {
		c.gone, c.inferred = e.old, e.inferred
	}
}

// isEmpty reports whether the entries cancel out: an object that the subscriber
// does not know was added and deleted.
func (c *coalesced[T]) isEmpty() bool { return c.gone == nil && c.lost == nil && c.now == nil }

// appendEntries appends the entries that replace the coalesced ones, at most a
// Deleted, a transient and an Added.
func (c *coalesced[T]) appendEntries(out []entry[T]) []entry[T] {
	from := len(out)
	if c.gone != nil {
		out = append(out, entry[T]{typ: Deleted, old: c.gone, inferred: c.inferred})
		c.known = nil
	}
	if c.lost != nil {
		out = append(out, entry[T]{typ: transient, old: c.lost})
	}
	switch {
	case c.now == nil:
	case c.known == nil:
		out = append(out, entry[T]{typ: Added, now: c.now, initial: c.initial && c.gone == nil})
	default:
		out = append(out, entry[T]{typ: Updated, old: c.known, now: c.now})
	}
	for i := range out[from:] {
		out[from+i].coalesced = c.n > len(out)-from
	}
	return out
}
