// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// Trim removes what is older than Options.MaxAge, and the oldest events beyond
// Options.MaxBytes. It keeps each object as it was in the oldest retained
// state, so every state from there on is complete. It returns when it is done,
// or with the context's error; the next call then continues. A damaged stream
// is not trimmed: see [Stream.Damage].
//
// Trimming by age moves the start of the retained span in steps of 1/32 of
// MaxAge, so up to that much more is kept.
func (s *Store) Trim(ctx context.Context) error {
	if s.opts.ReadOnly {
		return nil
	}
	s.trimMu.Lock()
	defer s.trimMu.Unlock()
	for _, st := range s.allStreams() {
		if err := st.checkClock(); err != nil && !errors.Is(err, ErrDiskFull) {
			return err
		}
	}
	if age := s.opts.MaxAge; age > 0 {
		if err := s.trim(ctx, s.ageClock().Add(-age), age/32); err != nil {
			return err
		}
	}
	return s.trimBySize(ctx)
}

// maxJump is how much time may have passed since the newest head for Trim to believe
// the clock at once.
const maxJump = time.Hour

// ageClock returns the time from which ages are counted. A clock that is ahead when the
// process starts, before it is set, must not remove what is recorded: for an hour, more
// time is not counted than the process has seen pass, and an hour.
func (s *Store) ageClock() time.Time {
	now, seen := s.now(), time.Since(s.opened)
	if limit := s.newest.Add(seen + maxJump); !s.newest.IsZero() && seen < maxJump && now.After(limit) {
		return limit
	}
	return now
}

// trim moves the start of the retained span to t, in streams where that is at
// least a step, and removes what is older. A damaged stream is only ever
// removed as a whole.
func (s *Store) trim(ctx context.Context, t time.Time, step time.Duration) error {
	for _, st := range s.allStreams() {
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
	err := st.advanceStart(t, step)
	for more := true; more && err == nil; {
		if more, err = st.sweep(); err == nil {
			err = ctx.Err()
		}
	}
	return err
}

// advanceStart moves the start of the retained span to the last head before t.
// After that, removing what is older can be interrupted at any time.
func (st *Stream) advanceStart(t time.Time, step time.Duration) error {
	if err := st.s.acquire(); err != nil {
		return err
	}
	defer st.s.release()
	all := st.eras()
	first := all[0]
	if first.from.At.After(st.s.now()) {
		for _, e := range all[1:] {
			if e.from.At.Before(first.from.At) {
				first.from.At = e.from.At // the start was observed before that
			}
		}
	}
	if first.from.RV == 0 || t.Sub(first.from.At) < step {
		return nil
	}
	to, e, err := st.retainedAt(t)
	if err != nil || to.RV < first.from.RV || to.RV == first.from.RV && e.number == first.number {
		return err
	}
	b := st.s.db.NewBatch()
	if e.number > first.number {
		if err := b.DeleteRange(numberKey(tableClock, st.id, 0), numberKey(tableClock, st.id, e.number+1), nil); err != nil {
			return err
		}
	}
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
	st.steps = st.steps[e.number-first.number:]
	st.gaps = slices.DeleteFunc(slices.Clone(st.gaps), func(g Gap) bool { return g.before(to) })
	return nil
}

// drop removes a whole stream if it has no writer and ends before t.
func (st *Stream) drop(t time.Time) (dropped bool, err error) {
	if err := st.s.acquire(); err != nil {
		return false, err
	}
	defer st.s.release()
	st.s.catalogMu.Lock()
	defer st.s.catalogMu.Unlock()
	if !st.retire(t) {
		return false, nil
	}
	b := st.s.db.NewBatch()
	defer b.Close()
	for _, table := range streamTables {
		prefix := appendKey(nil, table, st.id)
		if err = b.DeleteRange(prefix, prefixEnd(prefix), nil); err != nil {
			break
		}
	}
	if err == nil {
		err = st.s.commit(b)
	}
	st.mu.Lock()
	if st.removed = err == nil; st.removed {
		st.span, st.gaps, st.steps = Span{}, nil, nil
	}
	st.mu.Unlock()
	if err != nil {
		return false, err
	}
	st.s.unreclaimed.Store(true)
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	name := st.resource.GroupResource()
	left := slices.DeleteFunc(slices.Clone(st.s.streams[name]), func(other *Stream) bool { return other == st })
	if st.s.streams[name] = left; len(left) == 0 {
		delete(st.s.streams, name)
	}
	return true, nil
}

// retire reports whether the stream has no writer and ends before t. If so, no
// new reads begin.
func (st *Stream) retire(t time.Time) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	end, now := st.span.To.At, st.s.now()
	for _, s := range st.steps { // the clock may have been behind at the end
		if s.From.After(end) && !s.From.After(now) {
			end = s.From
		}
	}
	st.removed = !st.hasWriter && end.Before(t)
	return st.removed
}

// maxSweep limits the log entries removed at a time, because the writer of the
// stream waits meanwhile.
const maxSweep = 512

// sweep removes some log entries at or before the start of the retained span,
// and the versions of their objects that are older than the state there.
func (st *Stream) sweep() (more bool, err error) {
	if err := st.s.acquire(); err != nil {
		return false, err
	}
	defer st.s.release()
	// Without this lock, an object could be created under a name that is just
	// being removed.
	st.writeMu.Lock()
	defer st.writeMu.Unlock()
	from, first := st.Span().From, st.eras()[0].number
	var keys []kube.Key
	last := uint64(0)
	err = st.scanLog(0, from.RV, func(key []byte, rv uint64, _ version) bool {
		more = len(keys) >= maxSweep && rv != last // entries at one RV stay together
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
	var r versionReader
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
		err = b.DeleteRange(numberKey(tableTimes, st.id, 0), timesKey(st.id, first, from.At), nil)
	}
	if err != nil {
		return false, err
	}
	// Gaps that end at or before the start go, too.
	err = st.eachGap(func(key []byte, g Gap) error {
		if !g.before(from) {
			return nil
		}
		return b.Delete(key, nil)
	})
	if err != nil {
		return false, err
	}
	st.s.unreclaimed.Store(true)
	return more, st.s.commit(b)
}

// keepNewest removes the versions of an object at or before rv, except the
// newest, which it stores whole. A deletion it removes as well.
func (r *versionReader) keepNewest(b *pebble.Batch, key kube.Key, rv uint64) error {
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
		if err := r.removeName(b, key, rv); err != nil {
			return err
		}
	case v.delta:
		v.delta = false
		value := append(appendVersion(nil, v, newest), r.text...)
		if err := b.Set(appendVersionKey(nil, r.st.id, key, newest), value, nil); err != nil {
			return err
		}
	}
	// One key at a time: a range deletion per object would slow down readers.
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

// removeName removes the name of an object that was deleted at or before rv and
// not created since.
func (r *versionReader) removeName(b *pebble.Batch, key kube.Key, rv uint64) error {
	name := appendNameKey(nil, r.st.id, key)
	value, err := r.st.s.get(name)
	if err != nil || value == nil {
		return err
	}
	l, err := parseLifetime(value)
	if err != nil || l.died == 0 || l.died > rv {
		return err
	}
	return b.Delete(name, nil)
}
