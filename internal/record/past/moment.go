// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// A State is a recorded state of a resource, and the time as of which it is shown.
type State struct {
	Stream *history.Stream
	RV     uint64
	At     time.Time
	// Since is when RV became the newest known RV.
	Since time.Time
	// Newest is set if Stream is the resource's newest epoch, to which the upstream
	// adds.
	Newest bool
}

// ErrUnrecorded: the resource is not recorded, or the moment is after the end of its
// record and recording has stopped.
var ErrUnrecorded = errors.New("not recorded")

// Locate returns the state of a resource at a moment. It waits a few seconds until
// the events that the gateway saw before the call are recorded, and after a start until the
// watch is resumed. The state may be of another API version than id. The error is one of
// the history (ErrBefore, ErrFuture, ErrGap, ErrClock), that of ctx, or [ErrUnrecorded];
// [Past.Refusal] maps it to a Status.
func (p *Past) Locate(ctx context.Context, id kube.Resource, when kube.Moment) (State, error) {
	if st := p.Newest(id); st != nil {
		id = st.Resource()
	}
	return p.LocateSynced(ctx, id, when, p.Sync(ctx, id))
}

// LocateSynced is [Past.Locate] after a [Past.Sync] of the resource, whose result is unsynced.
func (p *Past) LocateSynced(ctx context.Context, id kube.Resource, when kube.Moment, unsynced error) (State, error) {
	if err := p.Reached(when); err != nil {
		return State{}, err
	}
	if ctx.Err() != nil {
		return State{}, context.Cause(ctx)
	}
	when = p.onClock(when)
	streams := p.Streams(id)
	if len(streams) == 0 {
		return State{}, ErrUnrecorded
	}
	last := len(streams) - 1
	if when.RV == 0 && unsynced == nil && when.At.After(streams[last].Head().At) {
		if unsynced = heard(ctx, streams[last]); ctx.Err() != nil {
			return State{}, context.Cause(ctx)
		}
		when = p.onClock(when)
	}
	var m State
	var err error
	if when.RV != 0 {
		m, err = p.atRV(ctx, id, streams[last], when.RV)
	} else {
		m, err = atTime(ctx, streams[last], when)
	}
	m.Newest = true
	if head := streams[last].Head(); err == nil && unsynced != nil && when.RV == 0 && m.RV == head.RV && when.At.After(head.At) {
		head.At = KnownUntil(head.At, unsynced)
		return State{}, &history.RangeError{
			Err:      fmt.Errorf("%w: %s are recorded until %s: %w", ErrUnrecorded, id.GroupResource(), Stamp(head.At), unsynced),
			Resource: id, To: head, Why: unsynced,
		}
	}
	if !errors.Is(err, history.ErrBefore) {
		return m, cmp.Or(err, shownBefore(streams, when))
	}
	// The moment may be in an earlier epoch. Nothing was observed between two epochs.
	setBack := false // the clock, between two of the epochs
	for i, st := range slices.Backward(streams[:last]) {
		setBack = setBack || streams[i+1].Span().From.At.Before(st.Head().At)
		if when.RV != 0 && st.Check(when.RV) == nil {
			return exactly(ctx, st, when.RV)
		}
		if when.RV == 0 && st.Shows(when.At) {
			if when.Ago && setBack {
				return State{}, fmt.Errorf("%w: %s; the clock was set back since then: name a resourceVersion, or a time", history.ErrClock, Stamp(when.At))
			}
			old, err := atTime(ctx, st, when)
			return old, cmp.Or(err, shownBefore(streams[:i+1], when))
		}
		if gap := st.Between(streams[i+1], when.RV, when.At); gap != nil {
			return State{}, gap
		}
	}
	first := streams[0].Check(when.RV)
	if when.RV == 0 {
		_, first = streams[0].At(ctx, when.At)
	}
	if errors.Is(first, history.ErrBefore) && streams[0].Head().RV != 0 {
		err = first // names the begin of the record
	}
	return State{}, err
}

// onClock returns a moment by the present clock: an age was subtracted from what the clock
// showed when the request came, and it may have been set since.
func (p *Past) onClock(when kube.Moment) kube.Moment {
	if now := p.Now(); when.Ago && history.ClockSet(when.At, now) {
		when.At = now.Add(when.At.Sub(now)) // Sub is by the monotonic clock
	}
	return when
}

// heardTimeout is how long a read of the time after the head waits for what a recorder that
// has just been started writes first.
const heardTimeout = 3 * time.Second

// heard fails if nothing is known of the time after a stream's head, because its recorder
// has just been started.
func heard(ctx context.Context, st *history.Stream) error {
	first := st.Heard()
	if first == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, heardTimeout)
	defer cancel()
	select {
	case <-first:
		return nil
	case <-ctx.Done():
		return errors.New("the API server has not sent what changed while nothing was recorded")
	}
}

// Reached fails with history.ErrFuture if a finished recording ended before the moment:
// what happened then is not known. Printed times have whole seconds, rounded or cut off,
// so all of the second in which the recording ends is a part of it.
func (p *Past) Reached(when kube.Moment) error {
	if p == nil || when.RV != 0 || !p.record.Ended() {
		return nil
	}
	end := p.End()
	if end.IsZero() || !when.At.After(end.Truncate(time.Second).Add(time.Second)) {
		return nil
	}
	return &history.RangeError{
		Err: fmt.Errorf("%w: %s is after the end of the recording, %s", history.ErrFuture, Stamp(when.At), Stamp(end)),
		To:  history.Moment{At: end},
	}
}

func atTime(ctx context.Context, st *history.Stream, when kube.Moment) (State, error) {
	at := st.At
	if when.Ago {
		at = st.AtAge
	}
	m, err := at(ctx, when.At)
	return State{Stream: st, RV: m.RV, At: when.At, Since: m.At}, err
}

// shownBefore fails if the clock showed the time, which the last of the epochs has, during an
// earlier one, too: it was set back before the last one began. The time at which one ends and
// the next one begins is the next one's.
func shownBefore(epochs []*history.Stream, when kube.Moment) error {
	for i, st := range epochs[:len(epochs)-1] {
		between := st.Head().At.Equal(when.At) && epochs[i+1].Span().From.At.Equal(when.At)
		if when.RV == 0 && !when.Ago && !between && st.Shows(when.At) {
			return fmt.Errorf("%w: %s; the clock showed it before and after the cluster's history began again: name a resourceVersion", history.ErrClock, Stamp(when.At))
		}
	}
	return nil
}

// exactly returns the state at an RV that the stream retains.
func exactly(ctx context.Context, st *history.Stream, rv uint64) (State, error) {
	at, err := st.TimeOf(ctx, rv)
	return State{Stream: st, RV: rv, At: at, Since: at}, err
}

// atRV returns the state when an RV was the newest. If the resource has not reached the
// RV, because only others have changed since, the upstream is asked for the newest one.
// The RVs of other resources do not tell: they may be of another store.
func (p *Past) atRV(ctx context.Context, id kube.Resource, st *history.Stream, rv uint64) (State, error) {
	err := st.Check(rv)
	if errors.Is(err, history.ErrFuture) && p.CatchUp != nil && !id.Uncached() {
		if why := cmp.Or(p.CatchUp(ctx, id), p.Sync(ctx, id)); why != nil {
			return State{}, &status.Error{Status: status.Unavailable(fmt.Sprintf(
				"%v, and the API server does not confirm in time what is newest (%v): try again", err, why), true)}
		}
		err = st.Check(rv)
	}
	if err != nil {
		return State{}, err
	}
	return exactly(ctx, st, rv)
}

// Stamp formats a time for messages.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
