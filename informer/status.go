// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"maps"
	"time"
)

// A Phase is what an informer, or a reflector, is about.
type Phase string

// The phases.
const (
	Starting Phase = "starting" // no list yet
	Listing  Phase = "listing"
	Watching Phase = "watching"
	Retrying Phase = "retrying" // waiting, after a failure
	Refused  Phase = "refused"  // the upstream will not have it listed or watched
	Stopped  Phase = "stopped"  // Run has returned
)

// A Status is what an informer, or a reflector, knows of itself.
type Status struct {
	Phase Phase
	// RV is what the copy is at; 0 of a reflector, whose sink knows.
	RV uint64
	// Objects is how many there are, of an informer, and Held how many bytes
	// they are kept in: compressed, if that is the policy. What is decoded is
	// not counted.
	Objects int
	Held    int64
	// Behind is how many events the slowest subscriber is yet to be told of
	// an informer.
	Behind int
	// Queued is how many events the queues of all its Reconcilers have, those
	// included that are under way or wait for a retry.
	Queued int
	// Lag is how long the upstream has not been heard of, of an informer.
	Lag time.Duration
	// LastContact is when the upstream was last heard of.
	LastContact time.Time
	// LastError is the last failure; nil once a stream stands again.
	LastError error
	// Warnings are the Warning headers of the last answer: the API server's
	// word on deprecated versions.
	Warnings []string
	// Bytes counts what the upstream sent.
	Bytes int64
	// Relists counts the full lists by reason: "initial", "expired",
	// "diverged", "malformed", "schema". It is not to be changed.
	Relists map[string]int
}

// Status returns what the informer knows of itself, over all namespaces: the
// phase that is furthest from Watching, the lowest RV, the oldest contact, and
// the sums of what is counted.
func (i *Informer[T]) Status() Status {
	i.mu.RLock()
	defer i.mu.RUnlock()
	sum := Status{Phase: Starting, Relists: map[string]int{}}
	if i.ended {
		sum.Phase = Stopped
	}
	first := true
	for _, s := range i.shards {
		if s.reflector == nil {
			continue
		}
		one := s.reflector.Status()
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
			sum.LastError = one.LastError
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
	for s := range i.hub.subs {
		sum.Behind = max(sum.Behind, i.hub.behind(s))
	}
	if !sum.LastContact.IsZero() {
		sum.Lag = time.Since(sum.LastContact)
	}
	return sum
}

// phaseOrder tells phases by how far they are from Watching.
var phaseOrder = map[Phase]int{Refused: 0, Stopped: 1, Starting: 2, Retrying: 3, Listing: 4, Watching: 5}

// Status returns the current status. It may be called at any time, by any
// goroutine, for every request of a server's too: it allocates nothing.
func (r *reflector[O]) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *reflector[O]) setPhase(p Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Phase = p
	if p == Watching {
		r.status.LastError = nil
	}
}

// contact notes n bytes from the upstream.
func (r *reflector[O]) contact(n int) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastContact = now
	r.status.Bytes += int64(n)
}

func (r *reflector[O]) warnings(w []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Warnings = w
}

func (r *reflector[O]) countRelist(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	relists := maps.Clone(r.status.Relists) // there are who read the old one
	relists[reason]++
	r.status.Relists = relists
}

// fail notes a failure.
func (r *reflector[O]) fail(err error) {
	if r.opts.failed != nil {
		defer r.opts.failed(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastError = err
	r.status.Phase = Retrying
	if _, ok := errors.AsType[*RefusedError](err); ok {
		r.status.Phase = Refused
	}
}

// Metrics are told what an informer does, for programs that count it. What an
// informer holds and how far it is behind is not told but asked for: see
// [Status]. Methods are called by several goroutines at a time, which wait for
// the call to return and hold no lock meanwhile. A method may be added with a
// new version of this package.
type Metrics interface {
	// Changed is told of each change of the copy: Added, Updated or Deleted.
	Changed(EventType)
	// Listed is told of each full list that was taken: why, as in
	// [Status].Relists, of how many objects, and how long it took.
	Listed(reason string, objects int, took time.Duration)
	// Watched is told of each watch that has ended, but for those that the
	// program ends: how, and how long it stood. It is "ended" where the API
	// server ended it in good order, as it does every few minutes; "cut" by
	// the network, or by an error of the API server; "silent", and replaced by
	// a second one; "expired", "diverged", "malformed" and "schema" lead to
	// what [Status].Relists counts, the third of them if it happens again.
	Watched(end string, stood time.Duration)
	// Failed is told of what Handler.Error is told of: a request or a watch
	// that failed. [RefusedError] is the API server's refusal.
	Failed(error)
	// Told is told of each event of an object that a subscriber was handed,
	// and whether it stood for several.
	Told(typ EventType, coalesced bool)
	// Reconciled is told of each call of a function of [Reconcile]: how old
	// the event was when the call began, how long the call took, and its
	// error.
	Reconciled(age, took time.Duration, err error)
}

// noMetrics count nothing.
type noMetrics struct{}

func (noMetrics) Changed(EventType) {}

func (noMetrics) Listed(string, int, time.Duration) {}

func (noMetrics) Watched(string, time.Duration) {}

func (noMetrics) Failed(error) {}

func (noMetrics) Told(EventType, bool) {}

func (noMetrics) Reconciled(time.Duration, time.Duration, error) {}

// watchEnd is how a watch has ended, as [Metrics] tell it.
func watchEnd(err error) string {
	switch {
	case err == nil:
		return "ended"
	case errors.Is(err, errExpired):
		return "expired"
	case errors.Is(err, errDiverged):
		return "diverged"
	case errors.Is(err, errReprinted):
		return "schema"
	case isMalformed(err):
		return "malformed"
	}
	return "cut"
}
