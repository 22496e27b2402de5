// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// Trim removes what is older than Options.MaxAge. What each object was at the
// oldest moment that is retained stays, so that every state from there on is
// complete.
func (s *Store) Trim(ctx context.Context) error {
	if s.opts.MaxAge <= 0 || s.opts.ReadOnly {
		return nil
	}
	s.mu.Lock()
	var streams []*Stream
	for _, all := range s.streams {
		streams = append(streams, all...)
	}
	s.mu.Unlock()
	var errs []error
	for _, st := range streams {
		errs = append(errs, st.trim(ctx, s.now().Add(-s.opts.MaxAge)))
	}
	return errors.Join(errs...)
}

// trim moves the beginning of the retained span to t, or close before it.
func (st *Stream) trim(ctx context.Context, t time.Time) error {
	if err := st.s.use(); err != nil {
		return err
	}
	defer st.s.done()
	to, err := st.headAt(t)
	if err != nil {
		return err
	}
	from := st.Span().From
	if to.RV > from.RV {
		// First the moment is recorded: from here on the removal can be
		// interrupted.
		if err := st.s.db.Set(appendKey(nil, tableRetained, st.id), appendMoment(nil, to), pebble.Sync); err != nil {
			return err
		}
		st.mu.Lock()
		st.span.From, from = to, to
		st.gaps = slices.DeleteFunc(slices.Clone(st.gaps), func(g Gap) bool { return g.To <= to.RV })
		st.mu.Unlock()
	}
	for ctx.Err() == nil {
		more, err := st.sweep(from)
		if !more || err != nil {
			return err
		}
	}
	return ctx.Err()
}

// swept is how many entries of the log are removed at a time.
const swept = 4096

// sweep removes some of the log's entries up to a moment, and of their objects
// all versions older than what they were then.
func (st *Stream) sweep(upTo Moment) (more bool, err error) {
	var keys []kube.Key
	last := uint64(0)
	err = st.log(0, upTo.RV, func(key kube.Key, rv uint64, _ version) bool {
		more = len(keys) >= swept && rv != last // those at one RV go together
		if !more {
			keys, last = append(keys, key), rv
		}
		return !more
	})
	if err != nil {
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
		if err := r.keepOne(b, key, upTo.RV); err != nil {
			return false, err
		}
	}
	if last != 0 {
		err = b.DeleteRange(appendLogKey(nil, st.id, 0, ""), appendLogKey(nil, st.id, last+1, ""), nil)
	}
	if err == nil {
		err = b.DeleteRange(numberKey(tableTimes, st.id, 0), numberKey(tableTimes, st.id, uint64(upTo.At.UnixMilli())), nil)
	}
	st.mu.Lock()
	gap := upTo.RV
	if len(st.gaps) > 0 {
		gap = min(gap, st.gaps[0].From)
	}
	st.mu.Unlock()
	if err == nil {
		err = b.DeleteRange(numberKey(tableGaps, st.id, 0), numberKey(tableGaps, st.id, gap), nil)
	}
	if err != nil {
		return false, err
	}
	return more, st.s.commit(b)
}

// keepOne removes the versions of an object up to rv but the newest, which
// becomes a whole one; also that if it is a deletion.
func (r *reader) keepOne(b *pebble.Batch, key kube.Key, rv uint64) error {
	ok, err := r.seek(key, rv)
	if !ok {
		return err
	}
	v, at, err := r.resolve()
	if err != nil {
		return err
	}
	end := at
	switch {
	case v.typ == kube.Deleted:
		end = at + 1
		if err := r.forget(b, key, rv); err != nil {
			return err
		}
	case v.delta:
		v.delta = false
		value := append(appendVersion(nil, v, at), r.text...)
		if err := b.Set(appendVersionKey(nil, r.st.id, key, at), value, nil); err != nil {
			return err
		}
	}
	return b.DeleteRange(appendVersionKey(nil, r.st.id, key, 0), appendVersionKey(nil, r.st.id, key, end), nil)
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
