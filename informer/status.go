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
