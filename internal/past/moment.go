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
	// Since is when RV became the newest known one.
	Since time.Time
	// Newest is set in the epoch that the upstream continues.
	Newest bool
}

// ErrUnrecorded: recording has stopped, and a moment is after what is recorded.
var ErrUnrecorded = errors.New("not recorded")

// Locate finds the state of a resource at a moment. It waits a few seconds
// for what was seen before the call to be recorded. The error is of the history
// (ErrBefore, ErrFuture, ErrGap), of ctx, or [ErrUnrecorded]: see [Past.Refusal].
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
		m, err = p.atRV(streams[last], when.RV)
	} else {
		m, err = atTime(streams[last], when.At)
	}
	m.Newest = true
	if head := streams[last].Head(); err == nil && unsynced != nil && when.RV == 0 && m.RV == head.RV && when.At.After(head.At) {
		return State{}, fmt.Errorf("%w: %s are recorded until %s: %w", ErrUnrecorded, id.GroupResource(), Stamp(head.At), unsynced)
	}
	if !errors.Is(err, history.ErrBefore) {
		return m, err
	}
	// It may be of an earlier epoch. Between two of them nothing was observed.
	for _, st := range slices.Backward(streams[:last]) {
		if when.RV != 0 && st.Check(when.RV) == nil {
			return exactly(st, when.RV), nil
		}
		if when.RV == 0 && !when.At.After(st.Head().At) {
			if old, err := atTime(st, when.At); err == nil || !errors.Is(err, history.ErrBefore) {
				return old, err
			}
		}
	}
	return State{}, err
}

func atTime(st *history.Stream, t time.Time) (State, error) {
	m, err := st.At(context.Background(), t)
	return State{Stream: st, RV: m.RV, At: t, Since: m.At}, err
}

// exactly is the state at an RV of a stream, which has it.
func exactly(st *history.Stream, rv uint64) State {
	at := TimeOf(st, rv)
	return State{Stream: st, RV: rv, At: at, Since: at}
}

// atRV is the moment at which an RV was the newest. RVs are of the whole cluster: a
// resource that has not reached the RV is in its newest state.
func (p *Past) atRV(st *history.Stream, rv uint64) (State, error) {
	err := st.Check(rv)
	if err == nil {
		return exactly(st, rv), nil
	}
	if !errors.Is(err, history.ErrFuture) {
		return State{}, err
	}
	for _, id := range p.Resources() {
		if other := p.Newest(id); other != nil && rv <= other.Head().RV {
			return State{Stream: st, RV: st.Head().RV, At: TimeOf(other, rv), Since: st.Head().At}, nil
		}
	}
	return State{}, err
}

// TimeOf returns when an RV of the retained span became the newest known one.
func TimeOf(st *history.Stream, rv uint64) time.Time {
	span, gaps := st.Span(), st.Gaps()
	low, high := span.From.At, span.To.At
	for step := time.Millisecond; high.Sub(low) >= step; {
		t := low.Add(high.Sub(low) / 2).Truncate(step)
		reached := false
		if i := slices.IndexFunc(gaps, func(g history.Gap) bool { return g.Since.Before(t) && t.Before(g.Until) }); i >= 0 {
			reached = rv <= gaps[i].From
		} else if m, err := st.At(context.Background(), t); err == nil {
			reached = m.RV >= rv
		}
		if reached {
			high = t
		} else {
			low = t.Add(step)
		}
	}
	return high
}

// Stamp is a time as messages show it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
