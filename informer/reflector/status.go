// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"maps"
	"time"
)

// A Phase is the current activity of a reflector.
type Phase string

// The phases.
const (
	Starting Phase = "starting" // no list or watch yet
	Listing  Phase = "listing"  // taking a full list
	Watching Phase = "watching" // following a watch
	Retrying Phase = "retrying" // after a failure, until a list or watch is open
	Refused  Phase = "refused"  // the API server refuses the collection
	Stopped  Phase = "stopped"  // Run has returned
)

// A Status describes a reflector at one moment.
type Status struct {
	Phase Phase
	// LastContact is when the API server last sent anything, a refusal included.
	LastContact time.Time
	// LastKnown is when the sink was last known to be current: a list was complete, a watch
	// was opened that continues it, or an event or a bookmark came.
	LastKnown time.Time
	// LastError is the last failure; nil once a watch is open again, after [ErrSilent] once that
	// is checked. FailingSince is when the first failure since then was, zero without one.
	LastError    error
	FailingSince time.Time
	// Warnings are the Warning headers of the last response, with which API
	// servers announce deprecated versions.
	Warnings []string
	// Bytes is the number of bytes received.
	Bytes int64
	// Relists counts full lists by reason: "initial", "expired", "diverged",
	// "malformed", "schema", "unwatched". Do not modify it.
	Relists map[string]int
}

// Status returns the reflector's status. Any goroutine may call it at any time,
// as often as for every request of a server: it allocates nothing.
func (r *Reflector[O]) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *Reflector[O]) setPhase(p Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Phase = p
	if p == Watching && !r.suspect.Load() {
		r.status.LastError, r.status.FailingSince, r.status.LastKnown = nil, time.Time{}, time.Now()
	}
}

// known records that the sink has received all that the upstream has sent on a watch.
func (r *Reflector[O]) known() {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.suspect.Load() {
		r.status.LastKnown = now
	}
}

// silent records that a watch only appeared to be open, or was behind.
func (r *Reflector[O]) silent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspect.Store(true)
	if r.status.LastError == nil {
		r.status.FailingSince = time.Now()
	}
	if r.status.LastError = ErrSilent; r.Current().Before(r.status.LastKnown) {
		r.status.LastKnown = r.Current()
	}
}

// checked records that a check of the open watch, which began at a time, has found nothing missing,
// and reports whether no suspicion is left.
func (r *Reflector[O]) checked(began time.Time) bool {
	r.setCurrent(began)
	r.mu.Lock()
	passed := r.suspect.Load() && r.status.Phase == Watching
	if passed {
		r.suspect.Store(false)
		r.status.LastError, r.status.FailingSince, r.status.LastKnown = nil, time.Time{}, began
	}
	r.mu.Unlock()
	if passed && r.opts.Continuity != nil {
		r.opts.Continuity(Watched)
	}
	return !r.suspect.Load()
}

// contact records that the upstream sent n bytes.
func (r *Reflector[O]) contact(n int) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastContact = now
	r.status.Bytes += int64(n)
}

func (r *Reflector[O]) setWarnings(w []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Warnings = w
}

func (r *Reflector[O]) countRelist(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	relists := maps.Clone(r.status.Relists) // callers of Status share the old one
	relists[reason]++
	r.status.Relists = relists
}

// fail records and reports a failure.
func (r *Reflector[O]) fail(verb string, err error) {
	defer r.opts.Failed(verb, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.LastError == nil {
		r.status.FailingSince = time.Now()
	}
	r.status.LastError = err
	r.status.Phase = Retrying
	if isRefusal(err) {
		r.status.Phase = Refused
	}
}

// watchEnd returns the reason that [Options].Watched gets for a watch that
// ended with err.
func watchEnd(err error) string {
	switch {
	case err == nil:
		return "ended"
	case errors.Is(err, errExpired):
		return relistExpired
	case errors.Is(err, errDiverged):
		return relistDiverged
	case errors.Is(err, errColumnsChanged):
		return relistSchema
	case errors.Is(err, ErrSilent):
		return "silent"
	case isMalformed(err):
		return relistMalformed
	}
	return "cut"
}
