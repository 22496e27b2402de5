// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// longestChain is how many versions in a row are deltas: what has to be read
// to know the last of them.
const longestChain = 31

// An Event is one change of one object.
type Event struct {
	Type kube.EventType // Added, Modified or Deleted
	// Object is the state after the change, at its RV; that of a deletion is the
	// last state.
	Object *kube.Object
	// Prev is the version before it, nil for an Added.
	Prev *kube.Object
	// Inferred marks a change learned from a list.
	Inferred bool
	// At is when it was observed, to the millisecond.
	At time.Time
}

// A Stream is the history of one resource. It has one writer; any number of
// goroutines may read it.
type Stream struct {
	s     *Store
	id    streamID
	epoch int

	mu      sync.Mutex // guards what follows
	head    Moment
	last    map[kube.Key]stored // of the live objects
	columns map[string]uint64   // by their text
	times   time.Time           // of the last entry of the times
}

// A Moment is an RV and when it was the head.
type Moment struct {
	RV uint64
	At time.Time
}

// stored is what the last version of an object is on disk.
type stored struct {
	rv    uint64
	sum   uint64 // of its text
	chain uint8  // deltas in a row up to it
}

var seed = maphash.MakeSeed()

// Head returns up to where all is recorded; the zero value when nothing is.
func (st *Stream) Head() Moment {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.head
}

// timesEvery is how far apart the entries of times are at least.
const timesEvery = time.Second

// Append records events, which are those above the head up to rv, in order.
// When it returns nil, they are on disk (T9).
func (st *Stream) Append(events []Event, rv uint64, at time.Time) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if rv < st.head.RV {
		return fmt.Errorf("history: an append up to %d, the head is %d", rv, st.head.RV)
	}
	b := st.s.db.NewBatch()
	defer b.Close()
	changed := make(map[kube.Key]stored, len(events))
	var key, value []byte
	for i := range events {
		e := &events[i]
		o := e.Object
		columns, err := st.column(b, o.Columns)
		if err != nil {
			return err
		}
		now, v := stored{rv: o.RV}, version{typ: e.Type, inferred: e.Inferred, at: e.At}
		text := textOf(o, columns)
		now.sum = maphash.String(seed, text)
		before, ok := changed[o.Key]
		if !ok {
			before = st.last[o.Key]
		}
		// The delta is of what is on disk. That the version before is printed
		// in another way by now, or was never recorded, shows in its sum.
		prev := ""
		if e.Prev != nil && before.rv == e.Prev.RV && before.chain < longestChain {
			if prev = textOf(e.Prev, st.columns[e.Prev.Columns]); maphash.String(seed, prev) == before.sum {
				v.delta, v.base, now.chain = true, before.rv, before.chain+1
			}
		}
		if value = appendVersion(value[:0], v, o.RV); v.delta {
			value = appendDelta(value, prev, text)
		} else {
			value = append(value, text...)
		}
		key = appendVersionKey(key[:0], st.id, o.Key, o.RV)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
		key = appendLogKey(key[:0], st.id, o.RV, o.Key)
		if err := b.Set(key, nil, nil); err != nil {
			return err
		}
		if e.Type == kube.Deleted {
			now = stored{}
		}
		changed[o.Key] = now
	}
	if err := st.moveHead(b, Moment{rv, at}); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return err
	}
	st.head = Moment{rv, at}
	for key, now := range changed {
		if now.rv == 0 {
			delete(st.last, key)
		} else {
			st.last[kube.Key(append([]byte{}, key...))] = now
		}
	}
	return nil
}

// moveHead enters a new head into a batch.
func (st *Stream) moveHead(b *pebble.Batch, to Moment) error {
	ms := uint64(to.At.UnixMilli())
	value := binary.BigEndian.AppendUint64(nil, to.RV)
	if to.At.Sub(st.times) >= timesEvery {
		st.times = to.At
		if err := b.Set(numberKey(tableTimes, st.id, ms), value, nil); err != nil {
			return err
		}
	}
	return b.Set(appendKey(nil, tableHead, st.id), binary.BigEndian.AppendUint64(value, ms), nil)
}

// column returns the number of columnDefinitions.
func (st *Stream) column(b *pebble.Batch, text string) (uint64, error) {
	if id, ok := st.columns[text]; ok {
		return id, nil
	}
	id := uint64(len(st.columns) + 1)
	if err := b.Set(numberKey(tableColumns, st.id, id), []byte(text), nil); err != nil {
		return 0, err
	}
	st.columns[text] = id
	return id, nil
}
