// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"net/http"
	"time"
)

const (
	// minUnwatched is how long the upstream must fail to watch before a list is taken
	// instead. API servers keep the events of the last 75 s in their watch caches: until
	// then, a watch continues the sink's history without a gap.
	minUnwatched = 75 * time.Second
	// maxUnwatched is the longest time between two such lists.
	maxUnwatched = 5 * time.Minute
	// maxListWait is how long a list, which has to be taken in any case, waits for a watch
	// that sends it, or that is open before it.
	maxListWait = 10 * time.Second
)

// An unwatched measures for how long the upstream answers lists, and no watch, as an API
// server or a proxy that is overloaded, or badly configured. A list makes the sink current
// then; a watch that continues its history is better as long as there may be one, since the
// events between the head and the list are lost. The time of an outage, in which lists fail
// as well, does not count: a list would fail, too, or take the place of the watch that can
// be had after it.
type unwatched struct {
	total    time.Duration // of the failed rounds in a row in which lists were answered
	limit    time.Duration // of total, before a list; it doubles with each one
	ended    time.Time     // the last round
	answered bool          // the last list of this round was
}

// begin begins a round of Run.
func (u *unwatched) begin() { u.answered = false }

// lists notes the result of a request for a list.
func (u *unwatched) lists(err error) { u.answered = err == nil }

// reset is called when a watch has continued the sink's history.
func (u *unwatched) reset() { *u = unwatched{limit: minUnwatched, ended: time.Now()} }

// listed is called when a list is complete: the sink is current.
func (u *unwatched) listed() { u.total, u.ended = 0, time.Now() }

// failed ends a round that failed. Its time includes the pause before it.
func (u *unwatched) failed() {
	if u.answered {
		u.total += time.Since(u.ended)
	}
	u.ended = time.Now()
}

// isDue reports whether a list has to be taken, although a watch may continue the history.
func (u *unwatched) isDue() bool { return u.total >= u.limit }

// isOutage reports whether a failure says nothing about the collection or its history, as 410
// does.
func isOutage(err error) bool {
	code := codeOf(err)
	return code/100 != 4 || code == http.StatusTooManyRequests
}

// listUnwatched takes a list, with a watch only if one can be had now.
func (r *Reflector[O]) listUnwatched(ctx context.Context) error {
	r.log.Warn("the upstream answers lists, but no watch, relisting", "rv", r.sink.Head(), "after", r.unwatched.total.Round(time.Second))
	r.unwatched.total, r.unwatched.limit = 0, min(2*r.unwatched.limit, maxUnwatched)
	state, known := r.state, r.recent
	r.items = 0
	r.relist(relistUnwatched)
	err := r.list(ctx)
	if r.state == stateList && r.items == 0 && r.reason == relistUnwatched {
		r.state, r.recent = state, known // nothing was listed: a watch may still continue the history
	}
	return err
}
