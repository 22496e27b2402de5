// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"slices"
	"time"
)

// cutoff returns a time for which about that part of the history is older, but not more
// than half of the part that can be removed.
func (s *Store) cutoff(part float64) (low time.Time, err error) {
	if err := s.acquire(); err != nil {
		return low, err
	}
	defer s.release()
	var high time.Time
	var logs []*sizeEstimate
	all, removable := 0.0, 0.0
	for _, st := range s.allStreams() {
		l := &sizeEstimate{st: st, span: st.Span()}
		if err := l.read(); err != nil {
			return low, err
		}
		if all += l.total; !l.removable() {
			continue
		}
		removable += l.total
		for _, at := range []time.Time{l.span.From.At, l.span.To.At} { // the clock may have been set back
			if low.IsZero() || at.Before(low) {
				low = at
			}
		}
		if l.span.To.At.After(high) {
			high = l.span.To.At
		}
		logs = append(logs, l)
	}
	for remove := min(part*all, removable/2); high.Sub(low) > time.Millisecond; {
		middle, sum := low.Add(high.Sub(low)/2), 0.0
		for _, l := range logs {
			n, err := l.bytesBefore(middle)
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

// A sizeEstimate is the estimated size of a stream: its log, and in total.
type sizeEstimate struct {
	st         *Stream
	span       Span
	log, total float64
	times      []time.Time // of the events, for a short log
}

// minEstimatedLog is the size of a log below which an estimate from disk blocks
// is too coarse; then events are counted.
const minEstimatedLog = 64 * blockSize

// read fills in the sizes.
func (l *sizeEstimate) read() error {
	st := l.st
	if err := st.Damage(); err != nil {
		l.markDamaged(err)
	}
	for _, table := range []byte{tableVersions, tableLog} {
		prefix := appendKey(nil, table, st.id)
		n, err := st.s.db.EstimateDiskUsage(prefix, prefixEnd(prefix))
		if err = damage(err); errors.Is(err, ErrCorrupt) {
			l.markDamaged(err)
		} else if err != nil {
			return err
		}
		if l.total += float64(n); table == tableLog {
			l.log = float64(n)
		}
	}
	if l.log == 0 || l.log >= minEstimatedLog || l.times != nil {
		return nil
	}
	err := st.scanLog(l.span.From.RV, l.span.To.RV, func(_ []byte, _ uint64, v version) bool {
		l.times = append(l.times, v.at)
		return true
	})
	for i := len(l.times) - 2; i >= 0; i-- { // they decrease where the clock was set back
		if l.times[i].After(l.times[i+1]) {
			l.times[i] = l.times[i+1]
		}
	}
	if errors.Is(err, ErrCorrupt) {
		l.markDamaged(err)
		err = nil
	}
	return err
}

// markDamaged treats a damaged stream as one event at its end.
func (l *sizeEstimate) markDamaged(err error) {
	l.st.damaged(err)
	l.times = []time.Time{l.span.To.At}
}

// removable reports whether anything can be removed. A damaged stream can be
// removed when it has no writer.
func (l *sizeEstimate) removable() bool {
	if l.st.Damage() == nil {
		return l.log > 0
	}
	l.st.mu.Lock()
	defer l.st.mu.Unlock()
	return !l.st.hasWriter
}

// bytesBefore estimates how much of a stream is older than t: the same part as
// of its log, which is sorted by time.
func (l *sizeEstimate) bytesBefore(t time.Time) (float64, error) {
	if len(l.times) > 0 {
		i, _ := slices.BinarySearchFunc(l.times, t, time.Time.Compare)
		return l.total * float64(i) / float64(len(l.times)), nil
	}
	at, _, err := l.st.retainedAt(t)
	if err == nil && at.RV > l.span.From.RV {
		var n uint64
		n, err = l.st.s.db.EstimateDiskUsage(appendLogKey(nil, l.st.id, 0, ""), appendLogKey(nil, l.st.id, at.RV+1, ""))
		if err == nil {
			return l.total * float64(n) / l.log, nil
		}
	}
	if err = damage(err); errors.Is(err, ErrCorrupt) {
		l.markDamaged(err)
		return l.bytesBefore(t)
	}
	return 0, err
}
