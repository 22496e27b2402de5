// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"errors"
	"iter"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// LastVersions returns the last n events of an object above from, up to to, in
// order.
func (st *Stream) LastVersions(key kube.Key, from, to uint64, n int) ([]Event, error) {
	prefix := appendVersionKey(nil, st.id, key, 0)
	first, err := st.firstOf(prefix[:len(prefix)-8], from, to, n)
	if err != nil || first == 0 {
		return nil, err
	}
	return upTo(st.Versions(key, first-1), to)
}

// LastEvents returns the last n events above from, up to to, in order: a few
// more if there are several at the RV of the first.
func (st *Stream) LastEvents(from, to uint64, n int) ([]Event, error) {
	first, err := st.firstOf(appendKey(nil, tableLog, st.id), from, to, n)
	if err != nil || first == 0 {
		return nil, err
	}
	return upTo(st.Events(first-1, to), to)
}

// firstOf returns the RV of the first of the last n keys that are a prefix and an
// RV above from, up to to, 0 if there is none.
func (st *Stream) firstOf(prefix []byte, from, to uint64, n int) (first uint64, err error) {
	if from = max(from, st.Span().From.RV); n <= 0 || to <= from {
		return 0, nil
	}
	if err := st.s.use(); err != nil {
		return 0, err
	}
	defer st.s.done()
	bound := func(rv uint64) []byte { return binary.BigEndian.AppendUint64(append([]byte{}, prefix...), rv) }
	it, err := st.s.iter(bound(from+1), bound(to+1))
	if err != nil {
		return 0, err
	}
	for it.Last(); it.Valid() && n > 0; it.Prev() {
		first = binary.BigEndian.Uint64(it.Key()[len(prefix):])
		n--
	}
	return first, damage(errors.Join(it.Error(), it.Close()))
}

// upTo collects events up to an RV.
func upTo(events iter.Seq2[Event, error], rv uint64) (out []Event, err error) {
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if e.Object.RV > rv {
			break
		}
		out = append(out, e)
	}
	return out, nil
}
