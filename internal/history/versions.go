// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"iter"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// versionsRead is how many versions of one object are read at a time.
const versionsRead = 256

// Versions yields what happened to an object, in order, from the first event
// above rv on, or above the oldest retained moment: what it was there is the
// first one's Prev, and Get returns it. An error is the last it yields.
func (st *Stream) Versions(key kube.Key, rv uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		rv = max(rv, st.Span().From.RV)
		var r reader
		var prev *scan.Object
		var events []Event
		for first, more := true, true; more; first = false {
			err := st.read(rv, &r, func() (err error) {
				if first {
					if prev, err = r.get(key, rv); err != nil {
						return err
					}
				}
				events, more, err = r.versions(events[:0], key, rv, prev)
				return err
			})
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				prev, rv = live(e), e.Object.RV
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// live returns what lives after an event.
func live(e Event) *scan.Object {
	if e.Type == kube.Deleted {
		return nil
	}
	return e.Object
}

// versions appends the first versionsRead events of an object above rv, where it
// is prev and r.text is its text. More is true if there may be others.
func (r *reader) versions(events []Event, key kube.Key, rv uint64, prev *scan.Object) (all []Event, more bool, err error) {
	for r.it.SeekGE(appendVersionKey(nil, r.st.id, key, rv+1)); r.it.Valid(); r.it.Next() {
		got, at, v, err := r.current()
		if err != nil || got != key {
			return events, false, err
		}
		switch {
		case !v.delta:
			r.text = append(r.text[:0], v.text...)
		case prev == nil || v.base != prev.RV:
			return events, false, corrupt("%s at %d: the version at %d, which it builds on, is missing", key, at, v.base)
		default:
			if err := r.apply(v.text); err != nil {
				return events, false, corrupt("%s at %d: %v", key, at, err)
			}
		}
		o, err := r.object()
		if err != nil {
			return events, false, err
		}
		e := Event{Type: v.typ, Object: o, Prev: prev, Inferred: v.inferred, At: v.at}
		prev = live(e)
		if events = append(events, e); len(events) == versionsRead {
			return events, true, nil
		}
	}
	return events, false, r.it.Error()
}
