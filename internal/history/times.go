// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// At returns the newest state observed at or before t: its RV, and when it was
// observed. After the last event that is the head. At fails with [ErrBefore],
// with [ErrGap] if nothing was observed at t, or with [ErrFuture] if t is in
// the future.
func (st *Stream) At(ctx context.Context, t time.Time) (Moment, error) {
	t = t.Truncate(time.Millisecond)
	st.mu.Lock()
	span := st.span
	err := func() error {
		switch {
		case span.From.RV == 0 || t.Before(span.From.At):
			return st.rangeError(ErrBefore, formatTime(t))
		case t.After(st.s.now()):
			return st.rangeError(ErrFuture, formatTime(t))
		}
		for _, g := range st.gaps {
			if g.Since.Before(t) && t.Before(g.Until) {
				return st.rangeError(ErrGap, formatTime(t))
			}
		}
		return nil
	}()
	st.mu.Unlock()
	if err != nil {
		return Moment{}, err
	}
	if !t.Before(span.To.At) {
		return span.To, nil
	}
	if err := context.Cause(ctx); err != nil {
		return Moment{}, err
	}
	if err := st.s.acquire(); err != nil {
		return Moment{}, err
	}
	defer st.s.release()
	at, err := st.headAt(t)
	if err != nil {
		return Moment{}, err
	}
	if at.RV < span.From.RV {
		at = span.From
	}
	// Events come in batches. Some of the next batch may have been observed by
	// t.
	err = st.scanLog(at.RV, span.To.RV, func(_ []byte, rv uint64, v version) bool {
		if v.at.After(t) {
			return false
		}
		at = Moment{rv, v.at}
		return true
	})
	return at, err
}

// TimeOf returns when an RV of the retained span became the newest known one.
func (st *Stream) TimeOf(ctx context.Context, rv uint64) (time.Time, error) {
	span, gaps := st.Span(), st.Gaps()
	low, high := span.From.At, span.To.At
	for step := time.Millisecond; high.Sub(low) >= step; {
		t := low.Add(high.Sub(low) / 2).Truncate(step)
		reached := false
		if i := slices.IndexFunc(gaps, func(g Gap) bool { return g.Since.Before(t) && t.Before(g.Until) }); i >= 0 {
			reached = rv <= gaps[i].From
		} else if m, err := st.At(ctx, t); err == nil {
			reached = m.RV >= rv
		} else if ctx.Err() != nil {
			return time.Time{}, err
		}
		if reached {
			high = t
		} else {
			low = t.Add(step)
		}
	}
	return high, nil
}

// headAt returns the last entry of tableTimes at or before t.
func (st *Stream) headAt(t time.Time) (at Moment, err error) {
	prefix := appendKey(nil, tableTimes, st.id)
	it, err := st.s.iter(prefix, prefixEnd(prefix))
	if err != nil {
		return at, err
	}
	if it.SeekLT(numberKey(tableTimes, st.id, uint64(t.UnixMilli())+1)) {
		at, err = parseTimes(it.Key(), it.Value())
	}
	return at, damage(errors.Join(err, it.Error(), it.Close()))
}

// scanLog calls f for the log entries in (from, to] until f returns false. The
// version has only what the log contains. The key is valid during the call.
func (st *Stream) scanLog(from, to uint64, f func(key []byte, rv uint64, v version) bool) (err error) {
	it, err := st.s.iter(appendLogKey(nil, st.id, from+1, ""), appendLogKey(nil, st.id, to+1, ""))
	if err != nil {
		return err
	}
	defer func() { err = damage(errors.Join(err, it.Error(), it.Close())) }() // also if f panics
	for it.First(); err == nil && it.Valid(); it.Next() {
		var v version
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			v, _, err = parseFlags(value)
		}
		k := it.Key()
		if err == nil && !f(k[prefixLen+8:], binary.BigEndian.Uint64(k[prefixLen:]), v) {
			break
		}
	}
	return err
}

// An EventCount is a number of events by type.
type EventCount struct{ Added, Modified, Deleted int }

// EventCounts counts the events observed in [from, to), in bins of equal
// length; the last bin may be shorter. Events that are no longer retained are
// not counted.
func (st *Stream) EventCounts(ctx context.Context, from, to time.Time, bin time.Duration) ([]EventCount, error) {
	if bin <= 0 || !from.Before(to) {
		return nil, errors.New("history: the span to count in is empty")
	}
	if err := st.s.acquire(); err != nil {
		return nil, err
	}
	defer st.s.release()
	counts := make([]EventCount, (to.Sub(from)-1)/bin+1)
	start, err := st.headAt(from.Add(-time.Millisecond))
	if err != nil {
		return nil, err
	}
	span := st.Span()
	n := 0
	err = st.scanLog(max(start.RV, span.From.RV), span.To.RV, func(_ []byte, _ uint64, v version) bool {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return false
		}
		if v.at.Before(from) || !v.at.Before(to) {
			return v.at.Before(to)
		}
		c := &counts[v.at.Sub(from)/bin]
		switch v.typ {
		case kube.Added:
			c.Added++
		case kube.Modified:
			c.Modified++
		default:
			c.Deleted++
		}
		return true
	})
	return counts, cmp.Or(err, context.Cause(ctx))
}
