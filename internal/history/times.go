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

// At returns the newest state that was observed at or before t: the head, if t
// is later than that. Its time is when it was observed. It fails with
// [ErrBefore], [ErrGap] if nothing was observed at t, or [ErrFuture] if t is in
// the future.
func (st *Stream) At(t time.Time) (Moment, error) {
	t = t.Truncate(time.Millisecond)
	st.mu.Lock()
	span := st.span
	err := func() error {
		switch {
		case span.From.RV == 0 || t.Before(span.From.At):
			return st.refuse(ErrBefore, stamp(t))
		case t.After(st.s.now()):
			return st.refuse(ErrFuture, stamp(t))
		}
		for _, g := range st.gaps {
			if g.Since.Before(t) && t.Before(g.Until) {
				return st.refuse(ErrGap, stamp(t))
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
	if err := st.s.use(); err != nil {
		return Moment{}, err
	}
	defer st.s.done()
	at, err := st.headAt(t)
	if err != nil {
		return Moment{}, err
	}
	if at.RV < span.From.RV {
		at = span.From
	}
	// Events come in batches: some of the next one may have been observed by
	// then.
	err = st.log(at.RV, span.To.RV, func(_ []byte, rv uint64, v version) bool {
		if v.at.After(t) {
			return false
		}
		at = Moment{rv, v.at}
		return true
	})
	return at, err
}

// headAt returns the last entry of the times at or before t.
func (st *Stream) headAt(t time.Time) (at Moment, err error) {
	prefix := appendKey(nil, tableTimes, st.id)
	it, err := st.s.iter(prefix, after(prefix))
	if err != nil {
		return at, err
	}
	if it.SeekLT(numberKey(tableTimes, st.id, uint64(t.UnixMilli())+1)) {
		at, err = parseTimes(it.Key(), it.Value())
	}
	return at, damage(errors.Join(err, it.Error(), it.Close()))
}

// log calls f for the log's entries above from, up to to, until it returns
// false. The version has what the log knows of it; the key is valid until then.
func (st *Stream) log(from, to uint64, f func(key []byte, rv uint64, v version) bool) (err error) {
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

// A Count is how many events there were.
type Count struct{ Added, Modified, Deleted int }

// Counts counts the events observed from one time on and before another, in
// bins of equal length; the last one may be cut. Of what is not retained it
// counts none. It fails when ctx ends.
func (st *Stream) Counts(ctx context.Context, from, to time.Time, bin time.Duration) ([]Count, error) {
	if bin <= 0 || !from.Before(to) {
		return nil, errors.New("history: no span to count in")
	}
	if err := st.s.use(); err != nil {
		return nil, err
	}
	defer st.s.done()
	counts := make([]Count, (to.Sub(from)-1)/bin+1)
	start, err := st.headAt(from.Add(-time.Millisecond))
	if err != nil {
		return nil, err
	}
	span := st.Span()
	n := 0
	err = st.log(max(start.RV, span.From.RV), span.To.RV, func(_ []byte, _ uint64, v version) bool {
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
