// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// replayed is how many events are read at a time: of so many, those of one
// object are read together, since they are neighbours on disk.
const replayed = 4096

// Events yields the events above from, up to to, in order. An error is the last
// it yields.
func (st *Stream) Events(from, to uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r, err := st.reader()
		if err != nil {
			yield(Event{}, err)
			return
		}
		stopped, err := r.replay(from, to, func(e Event) bool { return yield(e, nil) })
		if err = errors.Join(err, r.close()); err != nil && !stopped {
			yield(Event{}, err)
		}
	}
}

// A logEntry is an event as the log has it, and its place in the order.
type logEntry struct {
	key kube.Key
	rv  uint64
	i   int
}

func (r *reader) replay(from, to uint64, f func(Event) bool) (stopped bool, err error) {
	log, err := r.st.s.db.NewIter(&pebble.IterOptions{
		LowerBound: appendLogKey(nil, r.st.id, from+1, ""),
		UpperBound: appendLogKey(nil, r.st.id, to+1, ""),
	})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	entries := make([]logEntry, 0, replayed)
	events := make([]Event, replayed)
	for more := log.First(); more; {
		entries = entries[:0]
		for ; more && len(entries) < replayed; more = log.Next() {
			k := log.Key()
			entries = append(entries, logEntry{kube.Key(k[prefixLen+8:]), binary.BigEndian.Uint64(k[prefixLen:]), len(entries)})
		}
		slices.SortFunc(entries, func(a, b logEntry) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.rv, b.rv))
		})
		if err := r.fill(events, entries); err != nil {
			return false, err
		}
		for i := range entries {
			if !f(events[i]) {
				return true, nil
			}
		}
	}
	return false, log.Error()
}

// fill reads the events of entries, which are sorted by object, to their places.
func (r *reader) fill(events []Event, entries []logEntry) error {
	for len(entries) > 0 {
		key, rest := entries[0].key, entries
		_, err := r.versions(key, entries[0].rv-1, func(e Event) bool {
			if e.Object.RV != rest[0].rv {
				return false
			}
			events[rest[0].i] = e
			rest = rest[1:]
			return len(rest) > 0 && rest[0].key == key
		})
		if err != nil {
			return err
		}
		if len(rest) > 0 && rest[0].key == key {
			return corrupt("%s at %d is in the log, but not among the versions", key, rest[0].rv)
		}
		entries = rest
	}
	return nil
}
