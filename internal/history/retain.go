// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// Trim removes what is older than Options.MaxAge, and what is too much for
// Options.MaxBytes, the oldest first. What each object was at the oldest moment
// that is retained stays, so that every state from there on is complete. It
// returns when it is done, or with the context's error; what is left is done by
// the next call. A stream that turns out to be damaged is left alone, and says so
// ([Stream.Damage]).
//
// By age it works in steps of a thirty-second part of it: so much more than that
// is kept.
func (s *Store) Trim(ctx context.Context) error {
	if s.opts.ReadOnly {
		return nil
	}
	s.trimming.Lock()
	defer s.trimming.Unlock()
	if age := s.opts.MaxAge; age > 0 {
		if err := s.trim(ctx, s.now().Add(-age), age/32); err != nil {
			return err
		}
	}
	return s.trimBytes(ctx)
}

// trim moves the beginning of the retained span to t in streams where that is a
// step at least, and removes what is older. Of a damaged stream that can only be
// all.
func (s *Store) trim(ctx context.Context, t time.Time, step time.Duration) error {
	for _, st := range s.all() {
		if err := ctx.Err(); err != nil {
			return err
		}
		dropped, err := st.drop(t)
		if err == nil && !dropped && st.Damage() == nil {
			err = st.trim(ctx, t, step)
		}
		if errors.Is(err, ErrCorrupt) {
			st.damaged(err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (st *Stream) trim(ctx context.Context, t time.Time, step time.Duration) error {
	err := st.retain(t, step)
	for more := true; more && err == nil; {
		if more, err = st.sweep(); err == nil {
			err = ctx.Err()
		}
	}
	return err
}

// all returns all streams.
func (s *Store) all() (all []*Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, streams := range s.streams {
		all = append(all, streams...)
	}
	slices.SortFunc(all, func(a, b *Stream) int { return cmp.Compare(a.id, b.id) })
	return all
}

func (st *Stream) hold(held bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.held = held
}

// retain moves the beginning of the retained span to the last head before t. From
// here on the removal of what is older can be interrupted.
func (st *Stream) retain(t time.Time, step time.Duration) error {
	if err := st.s.use(); err != nil {
		return err
	}
	defer st.s.done()
	span := st.Span()
	if span.From.RV == 0 || t.Sub(span.From.At) < step {
		return nil
	}
	to, err := st.headAt(t)
	if err != nil || to.RV <= span.From.RV {
		return err
	}
	b := st.s.db.NewBatch()
	defer b.Close()
	if err := b.Set(appendKey(nil, tableRetained, st.id), appendMoment(nil, to), nil); err != nil {
		return err
	}
	if err := st.s.commit(b); err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.span.From = to
	st.gaps = slices.DeleteFunc(slices.Clone(st.gaps), func(g Gap) bool { return g.To <= to.RV })
	return nil
}

// drop removes a stream that has no writer and ends before t, wholly.
func (st *Stream) drop(t time.Time) (dropped bool, err error) {
	if err := st.s.use(); err != nil {
		return false, err
	}
	defer st.s.done()
	st.s.making.Lock()
	defer st.s.making.Unlock()
	if !st.end(t) {
		return false, nil
	}
	b := st.s.db.NewBatch()
	defer b.Close()
	for _, table := range streamTables {
		prefix := appendKey(nil, table, st.id)
		if err = b.DeleteRange(prefix, after(prefix), nil); err != nil {
			break
		}
	}
	if err == nil {
		err = st.s.commit(b)
	}
	st.mu.Lock()
	if st.gone = err == nil; st.gone {
		st.span, st.gaps = Span{}, nil
	}
	st.mu.Unlock()
	if err != nil {
		return false, err
	}
	st.s.garbage.Store(true)
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(st.s.streams[st.resource]), func(other *Stream) bool { return other == st })
	if st.s.streams[st.resource] = left; len(left) == 0 {
		delete(st.s.streams, st.resource)
	}
	return true, nil
}

// end reports whether all of the stream is to go, which nobody reads from now on.
func (st *Stream) end(t time.Time) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.gone = !st.held && st.span.To.At.Before(t)
	return st.gone
}

// swept is how many entries of the log are removed at a time: the stream's writer
// waits meanwhile.
const swept = 512

// sweep removes some of the log's entries up to the beginning of the retained
// span, and of their objects all versions older than what they were then.
func (st *Stream) sweep() (more bool, err error) {
	if err := st.s.use(); err != nil {
		return false, err
	}
	defer st.s.done()
	// A name that is forgotten here is not to be one that comes back meanwhile.
	st.writing.Lock()
	defer st.writing.Unlock()
	from := st.Span().From
	var keys []kube.Key
	last := uint64(0)
	err = st.log(0, from.RV, func(key []byte, rv uint64, _ version) bool {
		more = len(keys) >= swept && rv != last // those at one RV go together
		if !more {
			keys, last = append(keys, kube.Key(key)), rv
		}
		return !more
	})
	if err != nil || last == 0 {
		return false, err
	}
	b := st.s.db.NewBatch()
	defer b.Close()
	var r reader
	if err := r.open(st); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if err := r.keepNewest(b, key, from.RV); err != nil {
			return false, err
		}
	}
	err = b.DeleteRange(appendLogKey(nil, st.id, 0, ""), appendLogKey(nil, st.id, last+1, ""), nil)
	if err == nil {
		err = b.DeleteRange(numberKey(tableTimes, st.id, 0), numberKey(tableTimes, st.id, uint64(from.At.UnixMilli())), nil)
	}
	if err != nil {
		return false, err
	}
	// Of gaps, those that end here or before.
	err = st.s.each(appendKey(nil, tableGaps, st.id), func(key, value []byte) error {
		g, err := parseGap(0, value)
		if err == nil && g.To <= from.RV {
			err = b.Delete(key, nil)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	st.s.garbage.Store(true)
	return more, st.s.commit(b)
}

// keepNewest removes the versions of an object up to rv but the newest, which
// becomes a whole one; also that if it is a deletion.
func (r *reader) keepNewest(b *pebble.Batch, key kube.Key, rv uint64) error {
	ok, err := r.seek(key, rv)
	if !ok {
		return err
	}
	v, newest, err := r.resolve()
	if err != nil {
		return err
	}
	keep := newest
	switch {
	case v.typ == kube.Deleted:
		keep++
		if err := r.forget(b, key, rv); err != nil {
			return err
		}
	case v.delta:
		v.delta = false
		value := append(appendVersion(nil, v, newest), r.text...)
		if err := b.Set(appendVersionKey(nil, r.st.id, key, newest), value, nil); err != nil {
			return err
		}
	}
	// One by one: a range for each object would slow down who reads.
	for r.it.SeekGE(appendVersionKey(nil, r.st.id, key, 0)); r.it.Valid(); r.it.Next() {
		got, at, err := parseVersionKey(r.it.Key())
		if err != nil {
			return err
		}
		if got != key || at >= keep {
			return nil
		}
		if err := b.Delete(r.it.Key(), nil); err != nil {
			return err
		}
	}
	return damage(r.it.Error())
}

// forget removes a name of which there was no object any more at rv, nor later.
func (r *reader) forget(b *pebble.Batch, key kube.Key, rv uint64) error {
	name := appendNameKey(nil, r.st.id, key)
	value, err := r.st.s.get(name)
	if err != nil || value == nil {
		return err
	}
	l, err := parseLife(value)
	if err != nil || l.died == 0 || l.died > rv {
		return err
	}
	return b.Delete(name, nil)
}
