// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
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
// the events that the gateway saw before the call are recorded. The error is one of
// the history (ErrBefore, ErrFuture, ErrGap), that of ctx, or [ErrUnrecorded];
// [Past.Refusal] maps it to a Status.
func (p *Past) Locate(ctx context.Context, id kube.Resource, when kube.Moment) (State, error) {
	unsynced := p.Sync(ctx, id)
	if ctx.Err() != nil {
		return State{}, context.Cause(ctx)
	}
	streams := p.Streams(id)
	if len(streams) == 0 {
		return State{}, ErrUnrecorded
	}
	last := len(streams) - 1
	var m State
	var err error
	if when.RV != 0 {
		m, err = p.atRV(ctx, id, streams[last], when.RV)
	} else {
		m, err = atTime(ctx, streams[last], when.At)
	}
	m.Newest = true
	if head := streams[last].Head(); err == nil && unsynced != nil && when.RV == 0 && m.RV == head.RV && when.At.After(head.At) {
		return State{}, fmt.Errorf("%w: %s are recorded until %s: %w", ErrUnrecorded, id.GroupResource(), Stamp(head.At), unsynced)
	}
	if !errors.Is(err, history.ErrBefore) {
		return m, err
	}
	// The moment may be in an earlier epoch. Nothing was observed between two epochs.
	for _, st := range slices.Backward(streams[:last]) {
		if when.RV != 0 && st.Check(when.RV) == nil {
			return exactly(ctx, st, when.RV)
		}
		if when.RV == 0 && !when.At.After(st.Head().At) {
			if old, err := atTime(ctx, st, when.At); err == nil || !errors.Is(err, history.ErrBefore) {
				return old, err
			}
		}
	}
	return State{}, err
}

func atTime(ctx context.Context, st *history.Stream, t time.Time) (State, error) {
	m, err := st.At(ctx, t)
	return State{Stream: st, RV: m.RV, At: t, Since: m.At}, err
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
	if errors.Is(err, history.ErrFuture) && p.CatchUp != nil && p.CatchUp(ctx, id) == nil && p.Sync(ctx, id) == nil {
		err = st.Check(rv)
	}
	if err != nil {
		return State{}, err
	}
	return exactly(ctx, st, rv)
}

// Stamp formats a time for messages.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
