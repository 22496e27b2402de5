// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// LastVersions returns the last n events of an object above from, up to to, in
// order.
func (st *Stream) LastVersions(key kube.Key, from, to uint64, n int) ([]Event, error) {
	from = max(from, st.Span().From.RV)
	if n <= 0 || to <= from {
		return nil, nil
	}
	r, err := st.reader()
	if err != nil {
		return nil, err
	}
	events, err := r.lastVersions(key, from, to, n)
	return events, errors.Join(err, r.close())
}

func (r *reader) lastVersions(key kube.Key, from, to uint64, n int) ([]Event, error) {
	first := uint64(0)
	ok, err := r.seek(key, to)
	for ; ok && err == nil && n > 0; n-- {
		got, rv, err := parseVersionKey(r.it.Key())
		if err != nil {
			return nil, err
		}
		if got != key || rv <= from {
			break
		}
		first, ok = rv, r.it.Prev()
	}
	if err = errors.Join(err, r.it.Error()); err != nil || first == 0 {
		return nil, err
	}
	var events []Event
	_, err = r.versions(key, first-1, func(e Event) bool {
		if e.Object.RV > to {
			return false
		}
		events = append(events, e)
		return true
	})
	return events, err
}

// LastEvents returns the last n events above from, up to to, in order: a few
// more if there are several at the RV of the first.
func (st *Stream) LastEvents(from, to uint64, n int) ([]Event, error) {
	from = max(from, st.Span().From.RV)
	if n <= 0 || to <= from {
		return nil, nil
	}
	entries, err := st.lastEntries(from, to, n)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	r, err := st.reader()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b logEntry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.rv, b.rv))
	})
	events := make([]Event, len(entries))
	err = r.fill(events, entries)
	slices.Reverse(events)
	return events, errors.Join(err, r.close())
}

// lastEntries returns the last entries of the log, the newest first.
func (st *Stream) lastEntries(from, to uint64, n int) ([]logEntry, error) {
	it, err := st.s.db.NewIter(&pebble.IterOptions{
		LowerBound: appendLogKey(nil, st.id, from+1, ""), UpperBound: appendLogKey(nil, st.id, to+1, ""),
	})
	if err != nil {
		return nil, err
	}
	var entries []logEntry
	for it.Last(); it.Valid(); it.Prev() {
		k := it.Key()
		rv := binary.BigEndian.Uint64(k[prefixLen:])
		if len(entries) >= n && entries[len(entries)-1].rv != rv {
			break
		}
		entries = append(entries, logEntry{kube.Key(k[prefixLen+8:]), rv, len(entries)})
	}
	return entries, errors.Join(it.Error(), it.Close())
}
