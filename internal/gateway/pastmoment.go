// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
)

// A moment is a state of a resource that was observed, and the time that it is
// when it is read.
type moment struct {
	stream *history.Stream
	rv     uint64
	at     time.Time
	// newest is set in the history that the upstream goes on with.
	newest bool
}

// errUnrecorded: recording does not go on, and a moment is after what there is.
var errUnrecorded = errors.New("not recorded")

// locate finds the moment in what is recorded of a resource.
func (p *past) locate(ctx context.Context, id kube.Resource, when kube.Moment) (moment, error) {
	behind := p.sync(ctx, id)
	if ctx.Err() != nil {
		return moment{}, context.Cause(ctx)
	}
	streams := p.streams(id)
	if len(streams) == 0 {
		return moment{}, errUnrecorded
	}
	last := len(streams) - 1
	var m moment
	var err error
	if when.RV != 0 {
		m, err = p.atRV(streams[last], when.RV)
	} else {
		m, err = atTime(streams[last], when.At)
	}
	m.newest = true
	if head := streams[last].Head(); err == nil && behind != nil && when.RV == 0 && m.rv == head.RV && when.At.After(head.At) {
		return moment{}, fmt.Errorf("%w: %s are recorded until %s: %w", errUnrecorded, id.GroupResource(), stamp(head.At), behind)
	}
	if !errors.Is(err, history.ErrBefore) {
		return m, err
	}
	// It may be of an earlier epoch. Between two of them nothing was observed.
	for _, st := range slices.Backward(streams[:last]) {
		if when.RV != 0 && st.Check(when.RV) == nil {
			return moment{stream: st, rv: when.RV, at: timeOf(st, when.RV)}, nil
		}
		if when.RV == 0 && !when.At.After(st.Head().At) {
			if old, err := atTime(st, when.At); err == nil || !errors.Is(err, history.ErrBefore) {
				return old, err
			}
		}
	}
	return moment{}, err
}

func atTime(st *history.Stream, t time.Time) (moment, error) {
	m, err := st.At(t)
	return moment{stream: st, rv: m.RV, at: t}, err
}

// atRV is the moment at which an RV was the newest. RVs are of the whole cluster:
// a resource that has not come to it is as it was last.
func (p *past) atRV(st *history.Stream, rv uint64) (moment, error) {
	err := st.Check(rv)
	if err == nil {
		return moment{stream: st, rv: rv, at: timeOf(st, rv)}, nil
	}
	if !errors.Is(err, history.ErrFuture) {
		return moment{}, err
	}
	for _, id := range p.history.Store().Resources() {
		if other := p.newest(id); other != nil && rv <= other.Head().RV {
			return moment{stream: st, rv: st.Head().RV, at: timeOf(other, rv)}, nil
		}
	}
	return moment{}, err
}

// timeOf returns when an RV became the newest that was known. It is of the
// retained span.
func timeOf(st *history.Stream, rv uint64) time.Time {
	span, gaps := st.Span(), st.Gaps()
	low, high := span.From.At, span.To.At
	for step := time.Millisecond; high.Sub(low) >= step; {
		t := low.Add(high.Sub(low) / 2).Truncate(step)
		reached := false
		if i := slices.IndexFunc(gaps, func(g history.Gap) bool { return g.Since.Before(t) && t.Before(g.Until) }); i >= 0 {
			reached = rv <= gaps[i].From
		} else if m, err := st.At(t); err == nil {
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

// stamp is a time as messages show it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
