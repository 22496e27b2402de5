// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"iter"
)

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

// Events yields what happens, to this one subscriber: first the objects there
// are, as Added and marked Initial, and Synced once that is all; then each
// change; and errors as they occur, with a zero Event, after which it goes on.
// It ends when ctx does or when Run returns, which it waits for if the informer
// does not run yet.
func (i *Informer[T]) Events(ctx context.Context) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		s := i.subscribe(oneRun)
		defer i.unsubscribe(s)
		for {
			e, ok := i.next(ctx, s)
			if !ok || !yield(e.event(), e.err) {
				return
			}
		}
	}
}

// A Handler has a function for each thing that may happen; those that are nil
// are not called. See [Event] for the arguments.
type Handler[T any] struct {
	// Event is called, before Add, Update or Delete, with all that there is to
	// know of the change.
	Event  func(Event[T])
	Add    func(now Ref[T])
	Update func(old, now Ref[T])
	Delete func(last Ref[T])
	Synced func()
	Error  func(error)
}

// Handle calls the handler's functions, one at a time, for the same things that
// Events yields, whenever the informer runs: in a run after the first one it
// goes on where it was. After stop has returned no further call begins, but the
// last one may still be going on; Run waits for it.
func (i *Informer[T]) Handle(h Handler[T]) (stop func()) {
	s := i.subscribe(allRuns)
	end := i.addTask(&task{do: func(ctx context.Context) {
		for {
			e, ok := i.next(ctx, s)
			if !ok {
				return
			}
			h.call(&e)
		}
	}})
	return func() {
		end()
		i.unsubscribe(s)
	}
}

func (h *Handler[T]) call(e *entry[T]) {
	old, now := Ref[T]{e.old}, Ref[T]{e.now}
	if h.Event != nil && e.object() != nil {
		h.Event(e.event())
	}
	switch {
	case e.err != nil:
		if h.Error != nil {
			h.Error(e.err)
		}
	case e.typ == Added && h.Add != nil:
		h.Add(now)
	case e.typ == Updated && h.Update != nil:
		h.Update(old, now)
	case e.typ == Deleted && h.Delete != nil:
		h.Delete(old)
	case e.typ == Synced && h.Synced != nil:
		h.Synced()
	}
}

// How long a subscription is for.
const (
	allRuns = false
	oneRun  = true // this one, or the next
)

// subscribe returns a subscription that is first told what there is.
func (i *Informer[T]) subscribe(once bool) *subscription[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.hub.subscribe()
	if once {
		if s.run = i.runs; i.run == nil {
			s.run++
		}
	}
	s.backlog = &backlog[T]{}
	for _, r := range i.recordsLocked() {
		s.backlog.add(entry[T]{typ: Added, now: r, initial: true})
	}
	if i.synced {
		s.backlog.add(entry[T]{typ: Synced})
	}
	if s.backlog.empty() {
		s.backlog = nil
	}
	s.notify()
	return s
}

func (i *Informer[T]) unsubscribe(s *subscription[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hub.unsubscribe(s)
}

// next returns the next entry, waiting for it. ok is false when ctx ends or the
// subscription has; and when there is nothing left of the run that it was for.
func (i *Informer[T]) next(ctx context.Context, s *subscription[T]) (e entry[T], ok bool) {
	for ctx.Err() == nil {
		if len(s.taken) > 0 {
			e, s.taken[0] = s.taken[0], entry[T]{}
			if s.taken = s.taken[1:]; len(s.taken) == 0 {
				s.taken = nil
			}
			if e.object() != nil {
				i.metrics.Told(e.typ, e.coalesced)
			}
			return e, true
		}
		i.mu.Lock()
		over := s.over || s.run > 0 && (i.runs > s.run || i.runs == s.run && i.ended)
		if !s.over {
			i.hub.take(s)
		}
		i.mu.Unlock()
		switch {
		case len(s.taken) > 0:
		case over:
			return entry[T]{}, false
		default:
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
		}
	}
	return entry[T]{}, false
}
