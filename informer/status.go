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
	// Objects is how many there are, of an informer.
	Objects int
	// Behind is how many events the slowest subscriber is yet to be told of
	// an informer.
	Behind int
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
	// "diverged", "malformed", "schema".
	Relists map[string]int
}

// Status returns the current status. It may be called at any time, by any
// goroutine.
func (r *reflector[O]) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Relists = maps.Clone(s.Relists)
	return s
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
	r.status.Relists[reason]++
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
