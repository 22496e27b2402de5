// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// A Gap is a time in which nothing was observed, between the states at From and To. Their
// difference is recorded as inferred events.
//
// If From and To are equal, the gap is late: no event is missing, but the events of that
// time came at its end, and have the time of its end.
type Gap struct {
	From, To     uint64 // RVs
	Since, Until time.Time
}

// Late reports whether the events of the gap came at its end.
func (g Gap) Late() bool { return g.From == g.To }

// Holds reports whether an event of the stream happened in the gap, and has the time of its
// end.
func (g Gap) Holds(e Event) bool {
	rv := e.Object.RV
	if g.Late() {
		return g.From <= rv && g.Since.Before(e.At) && !e.At.After(g.Until)
	}
	return e.Inferred && g.From < rv && rv <= g.To
}

// has reports whether a time of an era is inside the gap.
func (g Gap) has(t time.Time, e era) bool {
	switch {
	case !g.Late() && g.To <= e.from.RV, g.Late() && e.steps && g.To < e.from.RV:
		return false // before the era
	}
	begun := g.Since.Before(t) || e.steps && g.From <= e.from.RV && !g.Late() // the era begins in it
	return begun && t.Before(g.Until)
}

// before reports whether the gap ends before the retained span begins.
func (g Gap) before(from Moment) bool {
	return g.To <= from.RV && !(g.Late() && g.Until.After(from.At))
}

// Gaps returns the gaps in the retained span, oldest first.
func (st *Stream) Gaps() []Gap {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.gaps)
}

// gapError returns the error for an RV or a time in a gap. Its ends are the nearest moments
// at which the state is known.
func (st *Stream) gapError(g Gap, moment any) error {
	since, until := formatTime(g.Since), formatTime(g.Until)
	if !g.Late() {
		since, until = fmt.Sprintf("%d (%s)", g.From, since), fmt.Sprintf("%d (%s)", g.To, until)
	}
	return &RangeError{
		Err: fmt.Errorf("%w: %v; %s were not observed between %s and %s: these two are the nearest moments that are known",
			ErrGap, moment, st.resource.GroupResource(), since, until),
		Resource: st.resource, From: Moment{g.From, g.Since}, To: Moment{g.To, g.Until},
	}
}

// Between returns the error for an RV or a time after the head of the stream and before the begin of
// the next epoch; nil if it is not there.
func (st *Stream) Between(next *Stream, rv uint64, at time.Time) error {
	head, begin := st.Head(), next.Span().From
	gap := Gap{From: head.RV, To: begin.RV, Since: head.At, Until: begin.At}
	switch {
	case head.RV == 0, begin.RV == 0:
		return nil
	case rv != 0 && head.RV < rv && rv < begin.RV:
		return st.gapError(gap, rv)
	case rv == 0 && head.At.Before(at) && at.Before(begin.At):
		return st.gapError(gap, formatTime(at))
	}
	return nil
}

// withLastGap returns the gap with the last one of the stream, if both are late and nothing is
// between them.
func (st *Stream) withLastGap(g Gap) Gap {
	st.mu.Lock()
	defer st.mu.Unlock()
	if n := len(st.gaps); n > 0 && g.Late() && st.gaps[n-1].Late() && st.gaps[n-1].Until.Equal(g.Since) {
		last := st.gaps[n-1]
		last.Until = g.Until
		return last
	}
	return g
}

// set adds the gap to a batch.
func (g Gap) set(w *writeBatch) error {
	g = w.st.withLastGap(g)
	w.gap = &g
	if g.Late() {
		return w.batch.Set(lateKey(w.st.id, g), binary.BigEndian.AppendUint64(nil, uint64(g.Until.UnixMilli())), nil)
	}
	return w.batch.Set(numberKey(tableGaps, w.st.id, g.From), appendGap(nil, g), nil)
}

// eachGap calls f for each gap on disk, with its key. f must not keep the key.
func (st *Stream) eachGap(f func(key []byte, g Gap) error) error {
	err := st.s.each(appendKey(nil, tableGaps, st.id), func(key, value []byte) error {
		g, err := parseGap(binary.BigEndian.Uint64(key[prefixLen:]), value)
		return cmp.Or(err, f(key, g))
	})
	if err != nil {
		return err
	}
	return st.s.each(appendKey(nil, tableLate, st.id), func(key, value []byte) error {
		g, err := parseLate(key, value)
		return cmp.Or(err, f(key, g))
	})
}

// loadGaps returns the gaps in a span that begins at from, in order.
func (st *Stream) loadGaps(from Moment) (gaps []Gap, err error) {
	err = st.eachGap(func(_ []byte, g Gap) error {
		if !g.before(from) {
			gaps = append(gaps, g)
		}
		return nil
	})
	// The late ones at an RV come before the one that begins there.
	slices.SortStableFunc(gaps, func(a, b Gap) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return gaps, err
}

// appendGap appends the value of a gap, 24 bytes. From is in the key.
func appendGap(b []byte, g Gap) []byte {
	b = binary.BigEndian.AppendUint64(b, g.To)
	b = binary.BigEndian.AppendUint64(b, uint64(g.Since.UnixMilli()))
	return binary.BigEndian.AppendUint64(b, uint64(g.Until.UnixMilli()))
}

func parseGap(from uint64, b []byte) (Gap, error) {
	if len(b) != 24 {
		return Gap{}, corrupt("%q is not a gap", b)
	}
	return Gap{From: from, To: binary.BigEndian.Uint64(b), Since: parseTime(b[8:]), Until: parseTime(b[16:])}, nil
}

// lateKey returns the key of a late gap: several can have the same RV.
func lateKey(s streamID, g Gap) []byte {
	return binary.BigEndian.AppendUint64(numberKey(tableLate, s, g.From), uint64(g.Since.UnixMilli()))
}

func parseLate(key, value []byte) (Gap, error) {
	if len(key) != prefixLen+16 || len(value) != 8 {
		return Gap{}, corrupt("%q is not a late gap", key)
	}
	rv := binary.BigEndian.Uint64(key[prefixLen:])
	return Gap{From: rv, To: rv, Since: parseTime(key[prefixLen+8:]), Until: parseTime(value)}, nil
}
