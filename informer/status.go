// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/reflector"
)

// A Phase is the current activity of an informer.
type Phase = reflector.Phase

// The phases.
const (
	Starting Phase = reflector.Starting // no list or watch yet
	Listing  Phase = reflector.Listing  // taking a full list
	Watching Phase = reflector.Watching // following a watch
	Retrying Phase = reflector.Retrying // after a failure, until a list or watch is open
	Refused  Phase = reflector.Refused  // the API server refuses the collection
	Stopped  Phase = reflector.Stopped  // Run has returned
)

// A Status describes an informer at one moment.
type Status struct {
	Phase Phase
	// RV is the head of the copy; the lowest one if the informer watches several
	// namespaces.
	RV uint64
	// Objects is the number of objects that the informer holds, and Held the
	// number of bytes of their stored text, after compression. Decoded objects
	// are not counted.
	Objects int
	Held    int64
	// Behind is the number of events that the slowest subscriber has not received
	// yet.
	Behind int
	// Queued is the number of events in the queues of all calls of
	// [Reconcile], including those being handled and those waiting for a
	// retry.
	Queued int
	// Lag is the time since LastContact; since the run began, if there was none.
	Lag time.Duration
	// LastContact is when the API server last sent anything, a refusal included.
	LastContact time.Time
	// LastError is the last failure; nil once a watch is open again.
	LastError error
	// Refused has the namespaces that [Informer.AddNamespace] has added and the API
	// server refuses, with the reason; nil if there is none.
	Refused map[string]error
	// Warnings are the Warning headers of the last response, with which API
	// servers announce deprecated versions.
	Warnings []string
	// Bytes is the number of bytes received.
	Bytes int64
	// Relists counts full lists by reason: "initial", "expired", "diverged",
	// "malformed", "schema"; "unwatched", because the API server answers lists and no watch.
	// Do not modify it.
	Relists map[string]int
}

// Status returns the informer's status over all namespaces: the phase that is
// furthest from Watching, the lowest RV, the oldest contact, and the sums of the
// counts. Any goroutine may call it at any time.
func (i *Informer[T]) Status() Status {
	i.mu.RLock()
	defer i.mu.RUnlock()
	sum := Status{Phase: Starting, Relists: map[string]int{}}
	if i.stoppedLocked() != nil {
		sum.Phase = Stopped
	}
	first := true
	for _, s := range i.shards {
		if s.reflector == nil {
			continue
		}
		one := s.reflector.Status()
		if s.refused != nil {
			one.Phase = Refused
			if sum.Refused == nil {
				sum.Refused = map[string]error{}
			}
			sum.Refused[s.namespace] = s.refused
		}
		if first || phaseOrder[one.Phase] < phaseOrder[sum.Phase] {
			sum.Phase = one.Phase
		}
		if first || s.head < sum.RV {
			sum.RV = s.head
		}
		if first || one.LastContact.Before(sum.LastContact) {
			sum.LastContact = one.LastContact
		}
		if one.LastError != nil {
			sum.LastError = cmp.Or(s.lastErr, one.LastError)
		}
		sum.Warnings = append(sum.Warnings, one.Warnings...)
		sum.Bytes += one.Bytes
		sum.Held += s.bytes
		for reason, n := range one.Relists {
			sum.Relists[reason] += n
		}
		first = false
	}
	sum.Objects = i.lenLocked()
	for t := range i.tasks {
		if t.queued != nil {
			sum.Queued += t.queued()
		}
	}
	for s := range i.events.subs {
		sum.Behind = max(sum.Behind, i.events.lag(s))
	}
	r := i.run
	switch {
	case !r.isActive():
	case first: // no namespaces
		sum.Phase = Watching
	case r.refusal != nil && sum.LastContact.IsZero() && sum.LastError == nil: // not answered yet
		sum.Phase, sum.LastError = Refused, r.refusal
	}
	switch {
	case !sum.LastContact.IsZero():
		sum.Lag = time.Since(sum.LastContact)
	case r.isActive() && !first:
		sum.Lag = time.Since(r.began)
	}
	return sum
}

// phaseOrder ranks phases by how near they are to Watching.
var phaseOrder = map[Phase]int{Refused: 0, Stopped: 1, Starting: 2, Retrying: 3, Listing: 4, Watching: 5}

// A Collection is what an informer watches, as its [Options] say.
type Collection struct {
	Resource                     Resource
	Namespaces                   []string // nil for all
	LabelSelector, FieldSelector string
}

// Metrics are functions that an informer calls, so that a program can count its work.
// [Status] has the size of the copy, and how far subscribers lag. Functions that are nil
// are not called.
//
// The functions are called concurrently. The informer waits for them to return and holds
// no lock while it does. They must not call [Informer.RemoveNamespace] or [Informer.Wait],
// which would wait for them.
type Metrics struct {
	// Changed is called for each change of the copy: Added, Updated or
	// Deleted.
	Changed func(EventType)
	// Listed is called after each full list, with its reason as in
	// [Status].Relists, the number of its objects and how long it took.
	Listed func(reason string, objects int, took time.Duration)
	// Watched is called for each watch that ended, unless the program ended
	// it, with the reason and how long the watch lasted: "ended" by the API
	// server in order, as happens every few minutes; "cut" by the network or
	// by an error of the API server; "silent", and closed by the informer;
	// or "expired", "diverged", "malformed" or "schema", which lead to a list
	// of that reason ("malformed" not until it repeats).
	Watched func(end string, lasted time.Duration)
	// Failed is called for each failed request or watch, as Handler.Error is.
	// The API server's refusal wraps a [*RefusedError].
	Failed func(error)
	// Delivered is called for each event of an object that a subscriber receives,
	// and whether the event stands for several.
	Delivered func(typ EventType, coalesced bool)
	// Reconciled is called after each call of a function of [Reconcile], with
	// the age of the event when the call began, how long the call took, and
	// its error.
	Reconciled func(age, took time.Duration, err error)
}

// complete returns m with all functions.
func (m Metrics) complete() Metrics {
	if m.Changed == nil {
		m.Changed = func(EventType) {}
	}
	if m.Listed == nil {
		m.Listed = func(string, int, time.Duration) {}
	}
	if m.Watched == nil {
		m.Watched = func(string, time.Duration) {}
	}
	if m.Failed == nil {
		m.Failed = func(error) {}
	}
	if m.Delivered == nil {
		m.Delivered = func(EventType, bool) {}
	}
	if m.Reconciled == nil {
		m.Reconciled = func(time.Duration, time.Duration, error) {}
	}
	return m
}
