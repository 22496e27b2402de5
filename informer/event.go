// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"iter"
)

// An EventType says what happened to an object.
type EventType string

// The types of events.
const (
	Added   EventType = "ADDED"
	Updated EventType = "UPDATED"
	Deleted EventType = "DELETED"
	// Synced is sent once, after the objects that existed at the beginning.
	Synced EventType = "SYNCED"

	transient EventType = "TRANSIENT" // for Handler.Transient
)

// An Event is a change of one object, as a subscriber receives it; or Synced.
type Event[T any] struct {
	Type EventType
	Key  Key // zero for Synced
	// Old is the version before, as this subscriber knows it. For Deleted it
	// is the last version. It is zero for Added.
	Old Ref[T]
	// New is the version after. It is zero for Deleted.
	New Ref[T]
	// Initial marks an Added of an object that existed when the subscription began, or
	// is in the first list of its namespace.
	Initial bool
	// Inferred marks a Deleted that follows from the object's absence from a
	// list, or from its successor. Old may not be the very last version.
	Inferred bool
	// Coalesced marks an event that stands for several, because the subscriber
	// lagged.
	Coalesced bool
}

// Ref returns the version that the event is about: Old for Deleted, else New.
func (e Event[T]) Ref() Ref[T] {
	if e.Type == Deleted {
		return e.Old
	}
	return e.New
}

// Object returns the decoded object that the event is about, as [Ref.Object] does:
// [ErrNoObject] for Synced.
func (e Event[T]) Object() (T, error) { return e.Ref().Object() }

// Events yields the events of one subscription: the objects that exist, as
// Added with Initial set; then Synced; then each change. A failure is yielded
// as an error with a zero Event and does not end the sequence, which ends when
// ctx ends or the informer stops running. Before the first run, it waits for that. After
// a run, it yields what exists and then [ErrStopped], with the refusal that ended the
// run, if there was one.
func (i *Informer[T]) Events(ctx context.Context) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		s := i.subscribe(oneRun)
		defer i.unsubscribe(s)
		var last error
		for e, ok := i.next(ctx, s); ok; e, ok = i.next(ctx, s) {
			if !yield(e.event(), e.err) {
				return
			}
			last = cmp.Or(e.err, last)
		}
		if why := i.whyStopped(s); ctx.Err() == nil && why != nil && !errors.Is(why, last) {
			yield(Event[T]{}, why)
		}
	}
}

// whyStopped returns why the only run of a subscription has ended: nil if its context
// did, after the subscription began.
func (i *Informer[T]) whyStopped(s *subscription[T]) error {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if s.stopped == nil && s.run == i.runs && i.run.err != nil {
		return i.stoppedLocked()
	}
	return s.stopped
}

// A Handler has a function for each kind of event. Nil functions are not
// called. See [Event] for the arguments.
type Handler[T any] struct {
	// Event is called with each event of an object, before Add, Update or Delete. It is
	// not called for Synced.
	Event  func(Event[T])
	Add    func(now Ref[T])
	Update func(old, now Ref[T])
	Delete func(last Ref[T])
	Synced func()
	Error  func(error)
	// Transient is called for an object that was added and deleted while the handler
	// lagged, with its last version. Without it, such objects are not reported, and need
	// no memory. The copy has had the object for a while.
	Transient func(last Ref[T])
}

// Handle subscribes a handler. Its functions receive what Events yields, one call at a
// time, while the informer runs; a later run continues where the last one ended.
//
// stop ends the subscription without waiting, so that a function of the handler may
// call it. done is closed when the last call has returned: at once if the informer
// does not run. So "<-stop()" waits for that, as Run does; within a call of the
// handler it would wait forever. stop may be called again, and returns the same channel.
//
// A panic of a function ends the program, and runtime.Goexit, as t.FailNow calls it, ends
// the deliveries of the run.
func (i *Informer[T]) Handle(h Handler[T]) (stop func() (done <-chan struct{})) {
	s := i.subscribeTransient(allRuns, h.Transient != nil)
	stopTask := i.addTask(&task{do: func(ctx context.Context) {
		for {
			e, ok := i.next(ctx, s)
			if !ok {
				return
			}
			h.call(&e)
		}
	}})
	return func() <-chan struct{} {
		defer i.unsubscribe(s)
		return stopTask()
	}
}

func (h *Handler[T]) call(e *entry[T]) {
	old, now := Ref[T]{e.old}, Ref[T]{e.now}
	if e.typ == transient {
		h.Transient(old)
		return
	}
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

// A lifetime is how long a subscription lasts.
type lifetime int

const (
	allRuns lifetime = iota // until it is closed
	oneRun                  // until the last run ends, which may have happened; the first one if there was none
)

// subscribe returns a subscription that begins with the existing objects.
func (i *Informer[T]) subscribe(l lifetime) *subscription[T] { return i.subscribeTransient(l, false) }

func (i *Informer[T]) subscribeTransient(l lifetime, transient bool) *subscription[T] {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.events.subscribe()
	s.transient = transient
	if l == oneRun {
		s.run = max(i.runs, 1)
		s.stopped = i.stoppedLocked()
	}
	s.backlog = &backlog[T]{transient: transient}
	for _, r := range i.recordsLocked() {
		s.backlog.add(entry[T]{typ: Added, now: r, initial: true})
	}
	if i.synced {
		s.backlog.add(entry[T]{typ: Synced})
	}
	if s.backlog.isEmpty() {
		s.backlog = nil
	}
	s.signal()
	return s
}

func (i *Informer[T]) unsubscribe(s *subscription[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.events.unsubscribe(s)
}

// next waits for the next entry and returns it. ok is false when ctx has ended,
// when the subscription is closed, and when all entries of its only run have
// been taken.
func (i *Informer[T]) next(ctx context.Context, s *subscription[T]) (e entry[T], ok bool) {
	for ctx.Err() == nil {
		if len(s.taken) > 0 {
			e, s.taken[0] = s.taken[0], entry[T]{}
			if s.taken = s.taken[1:]; len(s.taken) == 0 {
				s.taken = nil
			}
			if e.object() != nil && e.typ != transient {
				i.metrics.Delivered(e.typ, e.coalesced)
			}
			return e, true
		}
		i.mu.Lock()
		ended := s.closed || s.run > 0 && (i.runs > s.run || i.runs == s.run && i.stoppedLocked() != nil)
		if !s.closed {
			i.events.take(s)
		}
		i.mu.Unlock()
		switch {
		case len(s.taken) > 0:
		case ended:
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
