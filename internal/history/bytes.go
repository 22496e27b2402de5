// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Usage is how much a store takes.
type Usage struct {
	Bytes    int64 // on disk
	MaxBytes int64 // its bounds, 0 if there is none
	MaxAge   time.Duration
}

// usageWait is how long Usage waits for the database.
const usageWait = 200 * time.Millisecond

// Usage returns how much the store takes. It does not wait for a disk that hangs:
// then it is what it was before.
func (s *Store) Usage() Usage {
	if s.measuring.CompareAndSwap(false, true) {
		measured := make(chan struct{})
		go func() {
			defer close(measured)
			defer s.measuring.Store(false)
			bytes := uint64(0)
			if s.use() == nil {
				defer s.done()
				bytes = s.db.Metrics().DiskSpaceUsage()
			}
			s.bytes.Store(int64(bytes))
		}()
		select {
		case <-measured:
		case <-time.After(usageWait):
		}
	}
	return Usage{Bytes: s.bytes.Load(), MaxBytes: s.opts.MaxBytes, MaxAge: s.opts.MaxAge}
}

// Of MaxBytes, tables may take so many parts of 16: the rest is for the
// write-ahead log, with logs that are kept to be written again, and for tables
// that are being rewritten. When they take more, they are brought down by a
// quarter: what is removed is all over the tables, since these are in the order
// of the objects, so that all have to be rewritten, and that is to be worth it.
const (
	mostTables = 12
	fewTables  = 9
)

// bound returns how large the store may be: MaxBytes, or what the disk has for it
// if that is less, so that what is too old goes before the disk is full. 0 means
// no bound.
func (s *Store) bound() (int64, error) {
	if err := s.use(); err != nil {
		return 0, err
	}
	defer s.done()
	most := s.opts.MaxBytes
	disk, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return most, nil // a file system that does not say
	}
	has := int64(s.db.Metrics().DiskSpaceUsage()) + int64(disk.AvailBytes) - int64(cmp.Or(s.opts.reserve, reserve))
	if has <= 0 {
		return most, nil // others take it all: what is removed here makes no room
	}
	if most <= 0 || has < most {
		most = has
	}
	return most, nil
}

// trimBytes removes what is too much.
func (s *Store) trimBytes(ctx context.Context) error {
	bound, err := s.bound()
	if err != nil || bound <= 0 {
		return err
	}
	most, few := bound/16*mostTables, bound/16*fewTables
	for cut := false; ; cut = true {
		before, err := s.tables()
		if err != nil || before <= max(most, s.floor) {
			return err
		}
		// What was removed, but not from disk, goes first: only what is still too
		// much then is cut off.
		if s.garbage.Swap(false) {
			if err := s.compact(ctx); err != nil {
				s.garbage.Store(true)
				return err
			}
			size, err := s.tables()
			if err != nil {
				return err
			}
			if cut && size > most && before-size < before/64 {
				// Not the past takes it, but the present.
				s.floor = size + size/16
				s.opts.Logger.Warn("the history takes more than it may, without much of a past", "bytes", size, "max", bound)
				return nil
			}
			continue
		}
		t, err := s.older(float64(before-few) / float64(before))
		if err != nil {
			return err
		}
		if err := s.trim(ctx, t, 0); err != nil {
			return err
		}
		s.garbage.Store(true)
	}
}

// tables returns what the tables take. What is in memory only has no size yet.
func (s *Store) tables() (size int64, err error) {
	if err := s.use(); err != nil {
		return 0, err
	}
	defer s.done()
	for _, level := range s.db.Metrics().Levels {
		size += level.TablesSize
	}
	return size, nil
}

// older returns a time before which is about that part of what is recorded, but
// not of more than half of what can be removed.
func (s *Store) older(part float64) (low time.Time, err error) {
	if err := s.use(); err != nil {
		return low, err
	}
	defer s.done()
	var high time.Time
	var logs []*logSize
	all, removable := 0.0, 0.0
	for _, st := range s.all() {
		l := &logSize{st: st, span: st.Span()}
		if err := l.read(); err != nil {
			return low, err
		}
		if all += l.total; !l.removable() {
			continue
		}
		removable += l.total
		if low.IsZero() || l.span.From.At.Before(low) {
			low = l.span.From.At
		}
		if l.span.To.At.After(high) {
			high = l.span.To.At
		}
		logs = append(logs, l)
	}
	for remove := min(part*all, removable/2); high.Sub(low) > time.Millisecond; {
		middle, sum := low.Add(high.Sub(low)/2), 0.0
		for _, l := range logs {
			n, err := l.before(middle)
			if err != nil {
				return low, err
			}
			sum += n
		}
		if sum < remove {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}

// A logSize is what a stream takes: its log, and in all.
type logSize struct {
	st         *Stream
	span       Span
	log, total float64
	times      []time.Time // of the events, if they are few
}

// shortLog is below what sizes on disk, which are of blocks, tell too little.
const shortLog = 64 * blockSize

// read works the sizes out.
func (l *logSize) read() error {
	st := l.st
	if err := st.Damage(); err != nil {
		l.lose(err)
	}
	for _, table := range []byte{tableVersions, tableLog} {
		prefix := appendKey(nil, table, st.id)
		n, err := st.s.db.EstimateDiskUsage(prefix, after(prefix))
		if err = damage(err); errors.Is(err, ErrCorrupt) {
			l.lose(err)
		} else if err != nil {
			return err
		}
		if l.total += float64(n); table == tableLog {
			l.log = float64(n)
		}
	}
	if l.log == 0 || l.log >= shortLog || l.times != nil {
		return nil
	}
	err := st.log(l.span.From.RV, l.span.To.RV, func(_ []byte, _ uint64, v version) bool {
		l.times = append(l.times, v.at)
		return true
	})
	if errors.Is(err, ErrCorrupt) {
		l.lose(err)
		err = nil
	}
	return err
}

// lose has a damaged stream be as one event, at its end.
func (l *logSize) lose(err error) {
	l.st.damaged(err)
	l.times = []time.Time{l.span.To.At}
}

// removable reports whether there is something to remove: of a damaged stream
// there is when it has no writer any more.
func (l *logSize) removable() bool {
	if l.st.Damage() == nil {
		return l.log > 0
	}
	l.st.mu.Lock()
	defer l.st.mu.Unlock()
	return !l.st.held
}

// before returns about what of a stream is older than a time: the part that it
// is of its log, which is in the order of time.
func (l *logSize) before(t time.Time) (float64, error) {
	if len(l.times) > 0 {
		i, _ := slices.BinarySearchFunc(l.times, t, time.Time.Compare)
		return l.total * float64(i) / float64(len(l.times)), nil
	}
	at, err := l.st.headAt(t)
	if err == nil && at.RV > l.span.From.RV {
		var n uint64
		n, err = l.st.s.db.EstimateDiskUsage(appendLogKey(nil, l.st.id, 0, ""), appendLogKey(nil, l.st.id, at.RV+1, ""))
		if err == nil {
			return l.total * float64(n) / l.log, nil
		}
	}
	if err = damage(err); errors.Is(err, ErrCorrupt) {
		l.lose(err)
		return l.before(t)
	}
	return 0, err
}

// compactBytes is about how much is rewritten at a time: for so long, that takes
// its room on disk twice.
const compactBytes = 64 << 20

// compact rewrites the tables without what was removed.
func (s *Store) compact(ctx context.Context) error {
	bounds, err := s.tableBounds()
	if err != nil {
		return err
	}
	for i := range len(bounds) - 1 {
		if err := s.use(); err != nil {
			return err
		}
		err := damage(s.db.Compact(ctx, bounds[i], bounds[i+1], false))
		s.done()
		if errors.Is(err, ErrCorrupt) {
			continue // Pebble has said so; the other tables can be rewritten
		}
		if err == nil {
			// A full disk is what the room is kept for.
			if err = s.Err(); errors.Is(err, ErrDiskFull) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tableBounds returns keys, from before the first one to behind the last, between
// which the tables at the bottom take about compactBytes.
func (s *Store) tableBounds() (bounds [][]byte, err error) {
	if err := s.use(); err != nil {
		return nil, err
	}
	defer s.done()
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}
	bounds = [][]byte{{0}}
	levels = slices.DeleteFunc(levels, func(l []pebble.SSTableInfo) bool { return len(l) == 0 })
	if len(levels) > 0 {
		size := uint64(0)
		for _, table := range levels[len(levels)-1] {
			if size += table.Size; size >= compactBytes && !bytes.Equal(table.Largest.UserKey, bounds[len(bounds)-1]) {
				bounds, size = append(bounds, bytes.Clone(table.Largest.UserKey)), 0
			}
		}
	}
	return append(bounds, []byte{255}), nil
}
