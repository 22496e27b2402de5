// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

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

func (noMetrics) Changed(EventType)                              {}
func (noMetrics) Listed(string, int, time.Duration)              {}
func (noMetrics) Watched(string, time.Duration)                  {}
func (noMetrics) Failed(error)                                   {}
func (noMetrics) Told(EventType, bool)                           {}
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

// isMalformed reports whether an error is of a frame that is not one.
func isMalformed(err error) bool {
	return errors.Is(err, scan.ErrSyntax) || errors.Is(err, scan.ErrNotObject) || errors.Is(err, scan.ErrProtobuf)
}
