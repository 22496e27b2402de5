// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// At returns the newest state observed at or before t: its RV, and when it was
// observed. After the last event that is the head. At fails with [ErrBefore],
// with [ErrGap] if nothing was observed at t, with [ErrFuture] if t is in the
// future, or with [ErrClock] if the clock was set back and showed t again.
func (st *Stream) At(ctx context.Context, t time.Time) (Moment, error) { return st.at(ctx, t, false) }

// AtAge is At for a time that was computed from the present time and an age. It is
// one of the present clock, so it fails with [ErrClock] if it is before the last
// step of the clock.
func (st *Stream) AtAge(ctx context.Context, t time.Time) (Moment, error) {
	return st.at(ctx, t, true)
}

func (st *Stream) at(ctx context.Context, t time.Time, ago bool) (Moment, error) {
	t = t.Truncate(time.Millisecond)
	e, err := st.place(t, ago)
	if err != nil {
		return Moment{}, err
	}
	return st.stateAt(ctx, e, t)
}

// place returns the era of a time at which the state is known.
func (st *Stream) place(t time.Time, ago bool) (era, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.span.From.RV == 0 {
		return era{}, st.rangeError(ErrBefore, formatTime(t))
	}
	e, err := st.eraAtLocked(t, ago)
	switch {
	case err != nil:
		return e, err
	case !ago && t.After(st.s.now()):
		return e, st.rangeError(ErrFuture, formatTime(t))
	}
	for _, g := range st.gaps {
		if g.has(t, e) {
			return e, st.gapError(g, formatTime(t))
		}
	}
	return e, nil
}

// stateAt returns the newest state observed at or before a time of an era.
func (st *Stream) stateAt(ctx context.Context, e era, t time.Time) (Moment, error) {
	if e.last && !t.Before(e.to.At) {
		return e.to, nil
	}
	if err := context.Cause(ctx); err != nil {
		return Moment{}, err
	}
	if err := st.s.acquire(); err != nil {
		return Moment{}, err
	}
	defer st.s.release()
	at, err := st.headAt(e, t)
	if err != nil {
		return Moment{}, err
	}
	// Events come in batches. Some of the next batch may have been observed by
	// t.
	err = st.scanLog(at.RV, e.to.RV, func(_ []byte, rv uint64, v version) bool {
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
	all := st.eras()
	for len(all) > 1 && all[0].to.RV < rv {
		all = all[1:]
	}
	e := all[0]
	low, high := e.from.At, e.to.At
	for step := time.Millisecond; high.Sub(low) >= step; {
		t := low.Add(high.Sub(low) / 2).Truncate(step)
		m, err := st.stateAt(ctx, e, t)
		if err != nil && ctx.Err() != nil {
			return time.Time{}, err
		}
		if err == nil && m.RV >= rv {
			high = t
		} else {
			low = t.Add(step)
		}
	}
	return high, nil
}

// headAt returns the last head in an era, by tableTimes, at or before t.
func (st *Stream) headAt(e era, t time.Time) (at Moment, err error) {
	prefix := appendKey(nil, tableTimes, st.id)
	it, err := st.s.iter(prefix, prefixEnd(prefix))
	if err != nil {
		return at, err
	}
	if it.SeekLT(timesKey(st.id, e.number, t.Add(time.Millisecond))) {
		at, err = parseTimes(it.Key(), it.Value())
	}
	if at.RV < e.from.RV || at.RV == e.from.RV && e.steps { // of an era before
		at = e.from
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
// not counted. If the clock was set back, a bin can have events of more than one
// era. With a match, only the events that it selects are counted.
func (st *Stream) EventCounts(ctx context.Context, from, to time.Time, bin time.Duration, match Match) ([]EventCount, error) {
	if bin <= 0 || !from.Before(to) {
		return nil, errors.New("history: the span to count in is empty")
	}
	if err := st.s.acquire(); err != nil {
		return nil, err
	}
	defer st.s.release()
	counts := make([]EventCount, (to.Sub(from)-1)/bin+1)
	n := 0
	for _, e := range st.eras() {
		start, err := st.headAt(e, from.Add(-time.Millisecond))
		if err == nil {
			err = st.scanLog(start.RV, e.to.RV, func(key []byte, _ uint64, v version) bool {
				if n++; n%1024 == 0 && ctx.Err() != nil {
					return false
				}
				if v.at.Before(from) || !v.at.Before(to) {
					return v.at.Before(to)
				}
				if match != nil && !match(kube.Key(key), v.typ) {
					return true
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
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return nil, err
		}
	}
	return counts, nil
}
